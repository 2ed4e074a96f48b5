// Proves, by following the batch axis through every operation, that the rows of a model do not
// influence each other: then a request may be padded to the next bucket.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/shape_point.h"
#include "engine/plugin_library.h"

namespace kiln {

struct RowIndependence {
  bool independent = false;
  std::string reason;            // why not: names the node
  std::vector<int> output_axes;  // by output; -1: does not depend on the batch
};

// The imported graph at `point`, which must have 2 rows or more: at one row, a reshape that moves
// rows elsewhere cannot be told from one that does not. What is not known to keep rows apart counts
// as mixing them.
RowIndependence analyze_rows(const ir::Graph& graph, const ShapePoint& point,
                             std::span<const Plugin> plugins = {});

}  // namespace kiln
