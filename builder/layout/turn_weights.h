// Stores the weights of matmuls on the GPU by their columns: each column is what one result is made
// from, so that kernels for few rows read it as it lies, and libraries read either order alike. All
// shape points do the same, so that they share one copy.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::layout {

// Constants of rank 2, of f16, bf16 or f32, that nothing but such matmuls read as they are. Does
// nothing unless options.library_layouts. REQUIRES: every node is a Region.
Result<bool> turn_weights(ir::Graph& graph, PassContext& context);

}  // namespace kiln::layout
