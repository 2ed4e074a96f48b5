// What follows a MatMul, convolution or ConvTranspose element by element joins it in one region:
// bias, residual, scale and activation (spelled out in however many operations). So does what meets
// of the two halves of a MatMul's rows, element by element: silu(gate) * up.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::fuse {

// Convolutions: bias, add, activation.
Result<bool> fuse_convolution_epilogues(ir::Graph& graph, PassContext& context);
// MatMuls.
Result<bool> fuse_contraction_epilogues(ir::Graph& graph, PassContext& context);

}  // namespace kiln::fuse
