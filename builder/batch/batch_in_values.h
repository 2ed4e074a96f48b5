// Finds results that the size of the batch is part of: x / N, a mask of N rows, the shape itself.
// They are right for the batch they were made for alone, however well its rows are kept apart.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "builder/ir/graph.h"

namespace kiln {

// `graph` and `other` are one model at two sizes of the batch, `output_axes` is analyze_rows() of
// `graph`. Tells the output or the node, or nullopt if there is none. Sizes reach values as small
// constants, so constants up to 1 KiB are compared, by content.
std::optional<std::string> batch_in_values(const ir::Graph& graph, const ir::Graph& other,
                                           std::span<const int> output_axes);

}  // namespace kiln
