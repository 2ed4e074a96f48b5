#include "builder/batch/row_axis.h"

#include <cstring>

namespace kiln {
namespace {

// Whether the `batch` blocks along an axis of a constant hold equal bytes.
bool blocks_equal(const ir::Value& value, int64_t axis, int64_t batch) {
  if (bits_of(value.type.dtype) < 8) return false;
  size_t outer = 1;
  for (int64_t i = 0; i < axis; ++i)
    outer *= static_cast<size_t>(value.type.shape[static_cast<size_t>(i)]);
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
  int64_t wanted = 1;
  for (int64_t i = 0; i < rows.axis; ++i) wanted *= from[static_cast<size_t>(i)];
  int64_t before = 1;
  for (size_t i = 0; i < to.size() && before <= wanted; ++i) {
    if (before == wanted && to[i] >= batch && to[i] % batch == 0) {
      return RowAxis{static_cast<int64_t>(i), to[i] / batch};
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
  if (extent != batch * rows.per_row) return false;
  if (value.constant) return blocks_equal(value, axis, batch);
  if (value.producer == ir::kNoNode) return false;
  const ir::Node& node = graph.node(value.producer);
  const bool elementwise = std::holds_alternative<ir::Pointwise>(node.op) ||
                           std::holds_alternative<ir::Cast>(node.op) ||
                           std::holds_alternative<ir::Broadcast>(node.op);
  if (!elementwise) return false;
  const RowAxis here{axis, rows.per_row};
  for (ir::ValueId input : node.inputs) {
    if (!same_for_every_row(graph, input, here, value.type.rank(), batch)) return false;
  }
  return true;
}

}  // namespace kiln
