// Step kind: bytes from one device buffer to another.
#pragma once
#include "engine/cuda/steps/device_resources.h"
#include "engine/steps/spaces.h"

namespace kiln::cuda {

struct PreparedCopy {
  const plan::Copy* step = nullptr;
  std::shared_ptr<const Device> device;
};

Result<PreparedCopy> prepare_step(const plan::Copy& step, const DeviceResources& resources);
Result<> enqueue_step(const PreparedCopy& step, const Spaces& spaces, CUstream stream);

}  // namespace kiln::cuda
