// Fits attention in f16 or bf16 to what a library's fused kernel reads.
//
// The slices, reshapes and transposes that split one product into heads, and join the heads again,
// move into the attention's region, where they are strides of its operands and cost nothing. Masks
// become additive, in the operands' type: once for all the regions that read the same mask. What
// repeats a mask, as those of shifted windows for every image, moves into the region too.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::layout {

// Does nothing unless options.library_layouts. REQUIRES: every node is a Region.
Result<bool> fit_attention(ir::Graph& graph, PassContext& context);

}  // namespace kiln::layout
