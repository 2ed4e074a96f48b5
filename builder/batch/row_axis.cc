#include "builder/batch/row_axis.h"

#include <cstring>

namespace kiln {
namespace {

// Whether the rows along an axis of a constant hold equal bytes.
bool rows_equal(const ir::Value& value, RowAxis rows, int64_t batch) {
  if (bits_of(value.type.dtype) < 8) return false;
  size_t outer = static_cast<size_t>(rows.outer);
  for (int64_t i = 0; i < rows.axis; ++i) {
    outer *= static_cast<size_t>(value.type.shape[static_cast<size_t>(i)]);
  }
  if (outer == 0 || value.constant->size() == 0) return true;
  const size_t run = value.constant->size() / outer;
  const size_t block = run / static_cast<size_t>(batch);
  for (size_t o = 0; o < outer; ++o) {
    const std::byte* first = value.constant->data() + o * run;
    for (int64_t b = 1; b < batch; ++b) {
      if (std::memcmp(first, first + static_cast<size_t>(b) * block, block) != 0) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<RowAxis> reshape_rows(RowAxis rows, const Shape& from, const Shape& to,
                                    int64_t batch) {
  int64_t wanted = rows.outer;  // entries before the rows
  for (int64_t i = 0; i < rows.axis; ++i) wanted *= from[static_cast<size_t>(i)];
  int64_t before = 1;
  for (size_t i = 0; i < to.size() && before <= wanted; ++i) {
    const int64_t outer = wanted / before;
    if (wanted % before == 0 && to[i] >= outer * batch && to[i] % (outer * batch) == 0) {
      return RowAxis{static_cast<int64_t>(i), to[i] / (outer * batch), outer};
    }
    before *= to[i];
  }
  return std::nullopt;
}

bool same_for_every_row(const ir::Graph& graph, ir::ValueId id, RowAxis rows, int64_t rank,
                        int64_t batch) {
  const ir::Value& value = graph.value(id);
  const int64_t axis = rows.axis - (rank - value.type.rank());
  if (axis < 0) return true;
  const int64_t extent = value.type.shape[static_cast<size_t>(axis)];
  if (extent == 1) return true;
  if (extent != batch * rows.per_row * rows.outer) return false;
  const RowAxis here{axis, rows.per_row, rows.outer};
  if (value.constant) return rows_equal(value, here, batch);
  if (value.producer == ir::kNoNode) return false;
  const ir::Node& node = graph.node(value.producer);
  const bool elementwise = std::holds_alternative<ir::Pointwise>(node.op) ||
                           std::holds_alternative<ir::Cast>(node.op) ||
                           std::holds_alternative<ir::Broadcast>(node.op);
  if (!elementwise) return false;
  for (ir::ValueId input : node.inputs) {
    if (!same_for_every_row(graph, input, here, value.type.rank(), batch)) return false;
  }
  return true;
}

std::optional<RowAxis> gathered_rows(const ir::Value& indices, RowAxis rows, int64_t batch) {
  if (!indices.constant || indices.type.dtype != DType::kI64 || rows.outer != 1) {
    return std::nullopt;
  }
  std::vector<int64_t> numbers(static_cast<size_t>(indices.type.elements()));
  if (numbers.empty()) return std::nullopt;
  std::memcpy(numbers.data(), indices.constant->data(), numbers.size() * sizeof(int64_t));
  const Shape& shape = indices.type.shape;
  const Shape strides = row_major_strides(shape);
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] != batch) continue;
    bool own = true;
    for (size_t i = 0; i < numbers.size() && own; ++i) {
      const auto position = static_cast<int64_t>(i);
      const int64_t row = position / strides[a] % batch;
      int64_t index = numbers[i];
      if (index < 0) index += batch * rows.per_row;
      const int64_t within = index - row * rows.per_row;
      const int64_t first = numbers[static_cast<size_t>(position - row * strides[a])];
      own = within >= 0 && within < rows.per_row && within == first;
    }
    if (own) return RowAxis{static_cast<int64_t>(a), 1, 1};
  }
  return std::nullopt;
}

}  // namespace kiln
