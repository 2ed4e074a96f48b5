// Computes nodes whose inputs are all constant, with the host's plain kernels, so that folding
// equals running. A result much larger than what it was made from stays a node: it is cheaper to
// compute than to read.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> fold_constants(ir::Graph& graph, PassContext& context);
// The same for regions of loops: what fusion, precision and layouts have made of constants.
Result<bool> fold_constant_regions(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
