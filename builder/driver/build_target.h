// The target that a build is for: its device, its tactics and the tools that they need.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "builder/build_options.h"
#include "builder/cuda/cuda_target.h"
#include "formats/engine_file/plan.h"
#include "formats/timing_cache/timing_cache.h"

namespace kiln {

struct ChosenTarget {
  DeviceInfo device;
  std::vector<TacticProvider> providers;  // those that are not disabled
  std::optional<CudaTarget> cuda;         // on target cuda
  // Recorded in the timing cache's environment, and what this build adds.
  std::shared_ptr<DeviceAnswers> answers = std::make_shared<DeviceAnswers>();

  const CudaTools* tools() const { return cuda ? &cuda->tools : nullptr; }
  // Nothing can be run or timed here: what is known of the device comes from a timing cache.
  bool is_elsewhere() const { return cuda && !cuda->tools.device; }
  // Everything outside of a region that its time depends on: the timing cache's environment.
  std::string environment() const;
  // What the engine file says of it.
  plan::Origin origin() const;
  ReferenceOptions reference(std::span<const Plugin> plugins) const;
};

// kAuto takes the GPU where there is one; with a `target_device` the GPU is one that `cache` knows.
// kUnsupported: what was asked for cannot be had. kVersionMismatch: the device is recorded with
// another CUDA than this builder's. kInvalidArgument: the target has no such tactics to disable.
Result<ChosenTarget> choose_target(const BuildOptions& options, const TimingCache& cache);

}  // namespace kiln
