// Moves transposes below pointwise nodes where that leaves fewer of them: when all operands are
// transposed alike, or when the transpose meets its inverse.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> sink_transposes(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
