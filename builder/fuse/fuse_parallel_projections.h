// MatMuls with constant weights that read the same input (query, key and value; gate and up) become
// one wider MatMul whose result is sliced: the input is read once, and one large product runs
// faster than three small ones. Constant biases behind them are joined as well, as are the scales
// of products of 8-bit codes.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::fuse {

Result<bool> fuse_parallel_projections(ir::Graph& graph, PassContext& context);

}  // namespace kiln::fuse
