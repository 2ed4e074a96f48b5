// cuDNN as tactics ask it: what is recorded of the GPU, else what the library says of the one that
// the tools hold. kUnsupported where there is neither.
#pragma once
#include <string>
#include <vector>

#include "builder/cuda/build_tools.h"
#include "builder/tactics/cuda/cudnn_plans.h"

namespace kiln {

// As the functions of cudnn_plans.h.
Result<std::vector<std::string>> cudnn_engines(const CudaTools& tools, const CudnnProblem& problem,
                                               const CudnnLimits& limits);
Result<CudnnPlan> make_cudnn_plan(const CudaTools& tools, const CudnnProblem& problem,
                                  const std::string& engine);

}  // namespace kiln
