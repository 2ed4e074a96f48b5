// What the builder's driver needs of target cuda. Needs no CUDA header; where Kiln is compiled
// without the toolkit, builder/without_cuda stands in.
#pragma once
#include <functional>
#include <memory>

#include "builder/cuda/build_tools.h"
#include "builder/tactics/tactic.h"
#include "builder/tactics/trial_tensors.h"
#include "builder/verify/reference.h"

namespace kiln {

struct CudaTarget {
  CudaTools tools;
  DeviceInfo device;
  // Runs what is large of the reference on the GPU, by plain kernels of its own.
  ReferenceAccelerator accelerator;
  // Makes what candidates are tried on.
  std::function<std::unique_ptr<TrialTensors>()> trial_tensors;
};

// Opens GPU number `ordinal`. kUnsupported, with the reason, where there is none.
Result<CudaTarget> open_cuda_target(int ordinal);

// A GPU that is elsewhere: kernels are compiled for it, nothing runs; what its libraries would say
// is for the caller to put into the tools' answers. kVersionMismatch: it was described with another
// CUDA than this builder compiles with.
Result<CudaTarget> describe_cuda_target(const DeviceInfo& device);

// Best first where the clock does not decide.
std::span<const TacticProvider> cuda_providers();

}  // namespace kiln
