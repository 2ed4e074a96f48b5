// The target that a build is for: its device, its tactics and the tools that they need.
#pragma once
#include <optional>
#include <string>

#include "builder/build_options.h"
#include "builder/cuda/cuda_target.h"
#include "formats/engine_file/plan.h"

namespace kiln {

struct ChosenTarget {
  DeviceInfo device;
  std::span<const TacticProvider> providers;
  std::optional<CudaTarget> cuda;  // on target cuda

  const CudaTools* tools() const { return cuda ? &cuda->tools : nullptr; }
  // Everything outside of a region that its time depends on: the timing cache's environment.
  std::string environment() const;
  // What the engine file says of it.
  plan::Origin origin() const;
  ReferenceOptions reference(std::span<const Plugin> plugins) const;
};

// kAuto takes the GPU where there is one. kUnsupported: cuda was asked for and cannot be had.
Result<ChosenTarget> choose_target(BuildTarget target, Precision precision);

}  // namespace kiln
