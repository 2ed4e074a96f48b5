// What preparing a step may use; everything outlives the prepared step.
#pragma once
#include <span>

#include "engine/host_kernels.h"
#include "engine/plugin_library.h"
#include "formats/engine_file/plan.h"

namespace kiln {

struct StepResources {
  const plan::Plan& plan;
  HostKernels host_kernels;
  std::span<const Plugin> plugins;  // the plan's, by its numbers
};

}  // namespace kiln
