#include "engine/request/staging.h"

#include <cstring>

namespace kiln {
namespace {

constexpr uint64_t kAlignment = 64;

uint64_t round_up(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// False where a row is not a whole number of bytes (4-bit types).
bool lay_out_rows(const TensorType& type, int32_t batch_axis, int64_t batch, RowLayout& rows) {
  const auto axis = static_cast<size_t>(batch_axis);
  rows.blocks = 1;
  for (size_t i = 0; i < axis; ++i) rows.blocks *= static_cast<uint64_t>(type.shape[i]);
  auto elements = static_cast<uint64_t>(type.shape[axis] / batch);
  for (size_t i = axis + 1; i < type.shape.size(); ++i) {
    elements *= static_cast<uint64_t>(type.shape[i]);
  }
  const uint64_t bits = elements * static_cast<uint64_t>(bits_of(type.dtype));
  rows.row_bytes = bits / 8;
  return bits % 8 == 0;
}

bool stage(const std::vector<plan::IoTensor>& io, const std::vector<TensorType>& types,
           int64_t batch, std::vector<StagedTensor>& staged, uint64_t& end) {
  for (size_t i = 0; i < io.size(); ++i) {
    StagedTensor& tensor = staged.emplace_back();
    if (io[i].batch_axis < 0) continue;
    tensor.staged = true;
    tensor.offset = end;
    if (!lay_out_rows(types[i], io[i].batch_axis, batch, tensor.rows)) return false;
    end = round_up(end + static_cast<uint64_t>(types[i].bytes()));
  }
  return true;
}

}  // namespace

StagingLayout lay_out_staging(const plan::Plan& plan, const plan::ShapePoint& point) {
  StagingLayout layout;
  layout.end = round_up(point.arena_bytes);
  if (!plan.batch_padding || point.batch < 2) return layout;  // nothing is smaller than one row
  uint64_t end = layout.end;
  layout.possible = stage(plan.inputs, point.inputs, point.batch, layout.inputs, end) &&
                    stage(plan.outputs, point.outputs, point.batch, layout.outputs, end);
  if (layout.possible) layout.end = end;
  return layout;
}

void pad_rows(const void* from, int64_t from_rows, void* to, int64_t to_rows, RowLayout layout) {
  const uint64_t row = layout.row_bytes;
  const uint64_t given = static_cast<uint64_t>(from_rows) * row;
  const uint64_t wanted = static_cast<uint64_t>(to_rows) * row;
  if (row == 0) return;
  for (uint64_t block = 0; block < layout.blocks; ++block) {
    const std::byte* source = static_cast<const std::byte*>(from) + block * given;
    std::byte* target = static_cast<std::byte*>(to) + block * wanted;
    std::memcpy(target, source, given);
    for (uint64_t at = given; at < wanted; at += row) {
      std::memcpy(target + at, source + given - row, row);
    }
  }
}

void trim_rows(const void* from, int64_t from_rows, void* to, int64_t to_rows, RowLayout layout) {
  const uint64_t given = static_cast<uint64_t>(from_rows) * layout.row_bytes;
  const uint64_t wanted = static_cast<uint64_t>(to_rows) * layout.row_bytes;
  if (wanted == 0) return;
  for (uint64_t block = 0; block < layout.blocks; ++block) {
    std::memcpy(static_cast<std::byte*>(to) + block * wanted,
                static_cast<const std::byte*>(from) + block * given, wanted);
  }
}

}  // namespace kiln
