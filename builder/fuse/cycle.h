// Whether nodes can become one region.
#pragma once
#include <span>

#include "builder/ir/graph.h"

namespace kiln::fuse {

// Whether a path leads from a member out of the group and back into it.
bool makes_cycle(const ir::Graph& graph, std::span<const ir::NodeId> members);

}  // namespace kiln::fuse
