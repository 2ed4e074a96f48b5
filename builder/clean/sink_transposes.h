// Moves transposes below pointwise nodes where that leaves fewer of them, or as many and all data
// in one layout: when all operands are transposed alike, or when the transpose meets its inverse or
// an operand that is transposed alike. A convolution's result that they meet is transposed back, as
// its region can leave it in either order.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> sink_transposes(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
