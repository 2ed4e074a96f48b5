// Softmax over the last axis as it looks once it is spelled out in small operations.
#pragma once
#include <optional>

#include "builder/ir/graph.h"

namespace kiln::fuse {

struct SoftmaxPattern {
  ir::ValueId input;              // the scores, before any cast to a wider float
  bool nan_becomes_zero = false;  // guarded: where(is_nan(y), 0, y) or its inverse
};

// exp(x - max(x)) / sum(exp(x - max(x))), with casts and guards around it or not.
// Nothing but these nodes may read what lies between.
std::optional<SoftmaxPattern> match_softmax(const ir::Graph& graph, ir::ValueId result);

}  // namespace kiln::fuse
