// Attention spelled out: matmul, scaled and masked softmax in f32, matmul.
#pragma once
#include "builder/ir/graph.h"

namespace kiln {

// The body with its Attention node replaced. Grouped heads share k and v by broadcasting.
Result<ir::Graph> decompose_attention(const ir::Graph& body);

}  // namespace kiln
