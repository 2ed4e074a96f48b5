// The reference's matmuls and convolutions on the GPU: one thread an element of the result, sums in
// f64, kernels that no tactic uses; sampled elements are summed again on the host
// (builder/verify/sampled_sums.h). What is small, or of other types, stays on the host.
#pragma once
#include "builder/cuda/build_tools.h"
#include "builder/verify/reference.h"

namespace kiln {

ReferenceAccelerator make_gpu_reference(const CudaTools& tools);

}  // namespace kiln
