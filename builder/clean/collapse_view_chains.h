// Chains of Reshape and Transpose become the shortest chain that says the same: often one
// Transpose, one Reshape or nothing.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> collapse_view_chains(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
