// TrialTensors on the GPU: inputs go there once a region, outputs are compared where they lie.
#pragma once
#include <memory>

#include "builder/cuda/build_tools.h"
#include "builder/tactics/trial_tensors.h"

namespace kiln {

std::unique_ptr<TrialTensors> make_gpu_trial_tensors(const CudaTools& tools);

}  // namespace kiln
