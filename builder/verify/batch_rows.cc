#include "builder/verify/batch_rows.h"

#include <cstring>

namespace kiln {
namespace {

// A tensor as `outer` runs of `inner` bytes, the axis being part of a run.
struct Runs {
  size_t outer = 1, inner = 0;
};

Runs runs_of(const TensorType& type, int axis) {
  Runs runs;
  for (int i = 0; i < axis; ++i)
    runs.outer *= static_cast<size_t>(type.shape[static_cast<size_t>(i)]);
  runs.inner = runs.outer == 0 ? 0 : static_cast<size_t>(type.bytes()) / runs.outer;
  return runs;
}

}  // namespace

HostTensor stack_rows(std::span<const HostTensor> rows, int axis) {
  HostTensor result{rows.front().type, {}};
  const Runs runs = runs_of(result.type, axis);
  result.type.shape[static_cast<size_t>(axis)] *= static_cast<int64_t>(rows.size());
  std::vector<std::byte> bytes(static_cast<size_t>(result.type.bytes()));
  std::byte* to = bytes.data();
  for (size_t outer = 0; outer < runs.outer && runs.inner > 0; ++outer) {
    for (const HostTensor& row : rows) {
      std::memcpy(to, row.bytes.data() + outer * runs.inner, runs.inner);
      to += runs.inner;
    }
  }
  result.bytes = SharedBytes::take(std::move(bytes));
  return result;
}

HostTensor take_row(const HostTensor& tensor, int axis, int64_t i, int64_t count) {
  HostTensor result{tensor.type, {}};
  result.type.shape[static_cast<size_t>(axis)] /= count;
  const Runs runs = runs_of(tensor.type, axis);
  const size_t part = runs.inner / static_cast<size_t>(count);
  std::vector<std::byte> bytes(static_cast<size_t>(result.type.bytes()));
  for (size_t outer = 0; outer < runs.outer && part > 0; ++outer) {
    std::memcpy(bytes.data() + outer * part,
                tensor.bytes.data() + outer * runs.inner + static_cast<size_t>(i) * part, part);
  }
  result.bytes = SharedBytes::take(std::move(bytes));
  return result;
}

}  // namespace kiln
