// Erases nodes that no output depends on.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> remove_dead_code(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
