// What preparing a device step may use; everything outlives the prepared step.
#pragma once
#include <memory>

#include "engine/cuda/device.h"
#include "engine/cuda/module_set.h"
#include "formats/engine_file/plan.h"

namespace kiln::cuda {

// One an engine. The device's handles are made on first use, which is while an engine is loaded: an
// engine without matmuls never opens cuBLASLt.
struct DeviceResources {
  const plan::Plan& plan;
  std::shared_ptr<const Device> device;
  ModuleSet& modules;               // by the plan's blob numbers
  bool programmatic_launch = true;  // LoadOptions::programmatic_launch
};

}  // namespace kiln::cuda
