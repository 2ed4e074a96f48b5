// opaque_rows: what is known about the long tail.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "builder/batch/row_axis.h"

namespace kiln {
namespace {

using Result = std::optional<std::vector<Rows>>;

// [N, C, spatial...]: windows and interpolation stay within a row of axis 0, as long as the extent
// of axis 0 is kept.
constexpr std::array<std::string_view, 7> kRowsOfAxis0 = {
    "average_pool", "grid_sample", "lp_pool", "max_pool", "max_unpool", "resize", "col2im"};
// Work along the attribute `axis` only.
constexpr std::array<std::string_view, 5> kAlongAxis = {"arg_max", "arg_min", "cum_prod", "cum_sum",
                                                        "top_k"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool others_without_rows(std::span<const Rows> inputs) {
  return std::none_of(inputs.begin() + 1, inputs.end(),
                      [](const Rows& r) { return r.has_value(); });
}

Result all_at(const ir::Node& node, RowAxis rows) {
  return std::vector<Rows>(node.outputs.size(), rows);
}

Result along_axis(const ir::Graph& graph, const ir::Node& node, const Operation& operation,
                  RowAxis rows) {
  const int64_t rank = graph.type(node.inputs[0]).rank();
  int64_t axis = operation.get_int("axis", 0);
  if (axis < 0) axis += rank;
  if (axis == rows.axis) return std::nullopt;
  const bool dropped = graph.type(node.outputs[0]).rank() < rank;
  if (dropped && axis < rows.axis) --rows.axis;
  return all_at(node, rows);
}

// x [T, B, I]; y [T, D, B, H], y_h and y_c [D, B, H].
Result recurrent(const ir::Graph& graph, const ir::Node& node, std::span<const Rows> inputs,
                 int64_t batch) {
  if (inputs[0] != RowAxis{1, 1}) return std::nullopt;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const int64_t rank = graph.type(node.inputs[i]).rank();
    const RowAxis expected{rank == 1 ? 0 : 1, 1};
    const bool is_state = i >= 4;
    if (inputs[i] && inputs[i] != expected) return std::nullopt;
    if (!inputs[i] && is_state &&
        !same_for_every_row(graph, node.inputs[i], expected, rank, batch)) {
      return std::nullopt;
    }
  }
  std::vector<Rows> rows;
  for (ir::ValueId output : node.outputs) {
    rows.emplace_back(RowAxis{graph.type(output).rank() == 4 ? 2 : 1, 1});
  }
  return rows;
}

// The tuple of indices at `at` reads row `row`, and elsewhere what the tuple at `first`, which
// belongs to row 0, reads.
bool takes_own_row(std::span<const int64_t> numbers, size_t at, size_t first, size_t width,
                   int64_t row_axis, int64_t row) {
  for (size_t i = 0; i < width; ++i) {
    const bool is_row = static_cast<int64_t>(i) == row_axis;
    if (numbers[at + i] != (is_row ? row : numbers[first + i])) return false;
  }
  return true;
}

// Constant indices whose component for the batch axis is the position along one axis of the
// result, and whose others are the same for every row: row i reads row i.
Result gather_nd(const ir::Graph& graph, const ir::Node& node, std::span<const Rows> inputs,
                 int64_t batch) {
  const ir::Value& indices = graph.value(node.inputs[1]);
  const Shape& shape = indices.type.shape;
  if (!inputs[0] || inputs[0]->per_row != 1 || inputs[0]->outer != 1 || inputs[1] ||
      !indices.constant || indices.type.dtype != DType::kI64 || shape.empty() ||
      inputs[0]->axis >= shape.back()) {
    return std::nullopt;
  }
  const auto width = static_cast<size_t>(shape.back());
  const size_t tuples = indices.constant->size() / sizeof(int64_t) / std::max<size_t>(width, 1);
  std::vector<int64_t> numbers(tuples * width);
  std::memcpy(numbers.data(), indices.constant->data(), numbers.size() * sizeof(int64_t));
  const Shape strides = row_major_strides({shape.begin(), shape.end() - 1});
  for (size_t a = 0; a + 1 < shape.size(); ++a) {
    if (shape[a] != batch) continue;
    bool follows = true;
    for (size_t t = 0; t < tuples && follows; ++t) {
      const int64_t position = static_cast<int64_t>(t) / strides[a] % batch;
      const size_t first = t - static_cast<size_t>(position * strides[a]);
      follows = takes_own_row(numbers, t * width, first * width, width, inputs[0]->axis,
                              position - batch) ||
                takes_own_row(numbers, t * width, first * width, width, inputs[0]->axis, position);
    }
    if (follows) return all_at(node, {static_cast<int64_t>(a), 1});
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Rows>> opaque_rows(const ir::Graph& graph, const ir::Node& node,
                                             std::span<const Rows> inputs, int64_t batch) {
  const Operation& operation = std::get<ir::Opaque>(node.op).operation;
  const std::string_view name = operation.name;
  if (name == "gather_nd" && operation.get_int("batch_dims", 0) == 0) {
    return gather_nd(graph, node, inputs, batch);
  }
  if (name == "lstm" || name == "gru" || name == "rnn") {
    return operation.get_int("layout", 0) == 0 ? recurrent(graph, node, inputs, batch)
                                               : std::nullopt;
  }
  if (!inputs[0] || inputs[0]->outer != 1) return std::nullopt;
  if (contains(kAlongAxis, name) && others_without_rows(inputs)) {
    return along_axis(graph, node, operation, *inputs[0]);
  }
  const bool of_axis_0 =
      name == "grid_sample" || name == "max_unpool" || others_without_rows(inputs);
  if (contains(kRowsOfAxis0, name) && of_axis_0 && inputs[0]->axis == 0) {
    for (const Rows& rows : inputs.subspan(1)) {
      if (rows && rows != inputs[0]) return std::nullopt;
    }
    const bool kept = graph.type(node.outputs[0]).shape[0] == graph.type(node.inputs[0]).shape[0];
    // Pooling's indices count through the whole tensor, rows included.
    if (kept && node.outputs.size() == 1 && name != "max_unpool") return all_at(node, *inputs[0]);
  }
  return std::nullopt;
}

}  // namespace kiln
