// Algebraic rules that hold for every input, bit for bit but for the last digit of a power: x*1,
// x-0, pow(x, 2), double negation, where with a known condition. Rules that change NaN, infinities
// or the sign of zero (x*0, x+0 on floats) are left out on purpose.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> simplify_algebra(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
