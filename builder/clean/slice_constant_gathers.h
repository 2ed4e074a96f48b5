// A Gather whose constant indices are one index or an even progression is a Slice: a view instead
// of a lookup.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> slice_constant_gathers(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
