// A plan of cuDNN as a step of a region.
#pragma once
#include "builder/tactics/cuda/cudnn_plans.h"
#include "builder/tactics/lowered.h"

namespace kiln {

// A tensor of the problem and where it starts in its operand, in elements.
struct CudnnOperand {
  int64_t number = 0;
  int64_t offset = 0;
};

// Operands in the order of the call's inputs, then outputs; the buffers are left to the caller.
LibraryCall cudnn_call(const CudnnProblem& problem, const CudnnPlan& plan,
                       const std::vector<CudnnOperand>& operands);

}  // namespace kiln
