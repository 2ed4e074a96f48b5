// Casts to the dtype that a value already has, and chains of casts whose middle type loses nothing.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> simplify_casts(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
