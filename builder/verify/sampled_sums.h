// The reference's own check: what a GPU says of matmuls and convolutions, against f64 sums on the
// host over elements spread through the result. Shares no code with the GPU's kernels nor with the
// host's, so that a fault of either is seen.
#pragma once
#include <span>

#include "formats/operation/operation.h"
#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln {

// `result` is what "matmul", "conv" or "conv_transpose" made of `inputs`, all of them in host
// memory and in one dtype: f32, f16, bf16 or, for an f32 result, f8e4m3fn. kVerification names the
// element with both values. Cost: 64 elements, whatever the result's size.
Result<> check_sampled_sums(const Operation& operation, std::span<const TensorType> types,
                            std::span<const void* const> inputs, const TensorType& result_type,
                            const void* result);

}  // namespace kiln
