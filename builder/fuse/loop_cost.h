// The cost model that loop fusion ranks by: memory traffic first, arithmetic second, and a fixed
// price for each kernel. Only ratios matter, so its unit is one byte of traffic.
#pragma once
#include <span>

#include "builder/ir/graph.h"

namespace kiln::fuse {

// A body that becomes one kernel. A body of reshapes alone is an alias and costs nothing.
double loop_cost(const ir::Graph& body);

// Cheap enough to compute again in every reader: no reduction, no lookup, little arithmetic.
bool is_cheap(const ir::Graph& body);

}  // namespace kiln::fuse
