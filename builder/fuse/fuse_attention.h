// Attention spelled out in MatMuls and a softmax becomes one Attention node: additive, bool and
// causal masks, scales before or after the product, repeated key-value heads, any operand layout.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::fuse {

Result<bool> fuse_attention(ir::Graph& graph, PassContext& context);

}  // namespace kiln::fuse
