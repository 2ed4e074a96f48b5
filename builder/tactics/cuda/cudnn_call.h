// A plan of cuDNN as a step of a region.
#pragma once
#include "builder/cuda/build_tools.h"
#include "builder/tactics/cuda/cudnn_plans.h"
#include "builder/tactics/lowered.h"

namespace kiln {

// The GPU that the tools hold. kUnsupported where there is none.
Result<CudnnTarget> cudnn_target(const CudaTools& tools);

// `uids` are the problem's numbers of the operands, inputs first; the buffers are left to the
// caller.
LibraryCall cudnn_call(const CudnnTarget& target, const CudnnProblem& problem,
                       const CudnnPlan& plan, const std::vector<int64_t>& uids);

}  // namespace kiln
