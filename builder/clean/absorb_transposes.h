// A Transpose that swaps the last two axes in front of a MatMul becomes its transpose flag.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> absorb_transposes(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
