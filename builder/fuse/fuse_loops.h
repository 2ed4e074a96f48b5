// Pointwise nodes, reductions and data movement grow into loop regions: norms, softmax, activations
// and their residuals become one kernel each. Producers wait in a queue ordered by the modelled
// time that fusing them into their readers saves; a merge is legal when the merged body has a loop
// form and no cycle arises.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::fuse {

Result<bool> fuse_loops(ir::Graph& graph, PassContext& context);

}  // namespace kiln::fuse
