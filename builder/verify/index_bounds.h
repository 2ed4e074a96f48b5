// Which values of an input the operations further on accept as an index, a length or a position.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "builder/ir/graph.h"

namespace kiln {

// For each of the graph's inputs: with values in [0, bound) no operation finds an index outside of
// what it indexes. Values are followed through casts, movement, selection, sums with and products
// by constants, and the bodies of If, Loop and Region. At least 1; nullopt: nothing indexes with
// it.
std::vector<std::optional<int64_t>> index_bounds(const ir::Graph& graph);

}  // namespace kiln
