// Common subexpressions: of nodes with equal ops and equal inputs one stays. Equal small constants
// are merged too, so that nodes which read them can be.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> merge_equal_nodes(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
