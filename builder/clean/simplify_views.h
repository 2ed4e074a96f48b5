// Slices, pads, broadcasts, concats and reductions that move or combine nothing, and chains of
// views that one view can say.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> simplify_views(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
