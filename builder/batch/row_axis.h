// RowAxis: where a value keeps the rows of the batch.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "builder/ir/graph.h"

namespace kiln {

// Along `axis`, entry (o * batch + r) * per_row + i belongs to row r: `outer` other things come
// before the rows, and each row has `per_row` consecutive entries.
struct RowAxis {
  int64_t axis = 0;
  int64_t per_row = 1;
  int64_t outer = 1;
  friend bool operator==(const RowAxis&, const RowAxis&) = default;
};

// nullopt: the value is the same for every row.
using Rows = std::optional<RowAxis>;

// The rows of a reshape's result; nullopt when they are not kept together.
std::optional<RowAxis> reshape_rows(RowAxis rows, const Shape& from, const Shape& to,
                                    int64_t batch);

// Whether a value that does not depend on the batch may stand beside one whose rows are at `rows`,
// aligned from the right in a result of rank `rank`: it broadcasts there, or all its rows are
// equal.
bool same_for_every_row(const ir::Graph& graph, ir::ValueId value, RowAxis rows, int64_t rank,
                        int64_t batch);

// The rows of a gather from the axis that holds them, with constant indices: each row must read
// its own entries only, and the same ones relative to its first.
std::optional<RowAxis> gathered_rows(const ir::Value& indices, RowAxis rows, int64_t batch);

// The rows of each output of an opaque operation; nullopt when it may mix them.
std::optional<std::vector<Rows>> opaque_rows(const ir::Graph& graph, const ir::Node& node,
                                             std::span<const Rows> inputs, int64_t batch);

}  // namespace kiln
