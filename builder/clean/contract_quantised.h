// A MatMul of two dequantised e4m3 operands multiplies their codes instead and scales the product:
// (q_x s_x) (q_w s_w) = (q_x q_w) s_x s_w, which holds where s_x is one number for all of x and s_w
// one for all of w or one an output channel. Before constants are folded, which would store the
// weights in f32.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

// Becomes matmul(f8e4m3fn, f8e4m3fn) -> f32, a mul by the product of the scales, and a cast where
// the MatMul had a narrower type. The weights become a constant of codes. What does not fit, sums
// over no multiple of 16 codes among it, stays as it is, with a note that says why.
Result<bool> contract_quantised(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
