// Step kind: a launch of a kernel of ours.
#pragma once
#include <vector>

#include "engine/cuda/steps/device_resources.h"
#include "engine/steps/spaces.h"

namespace kiln::cuda {

struct PreparedKernelLaunch {
  const plan::KernelLaunch* step = nullptr;
  std::shared_ptr<const Device> device;
  CUfunction function = nullptr;
  bool programmatic = false;  // where a kernel is in front of it
};

Result<PreparedKernelLaunch> prepare_step(const plan::KernelLaunch& step,
                                          const DeviceResources& resources);
Result<> enqueue_step(const PreparedKernelLaunch& step, const Spaces& spaces, CUstream stream);

// Lets a captured launch take the addresses that `spaces` gives from now on; launches of the graph
// that are under way keep theirs.
Result<> rebind(const PreparedKernelLaunch& step, const Spaces& spaces, CUgraphExec graph,
                CUgraphNode node);

}  // namespace kiln::cuda
