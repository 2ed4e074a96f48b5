// A tensor as lines along one axis: what sorting, scanning and arg-reductions walk.
#pragma once
#include <cstdint>

#include "formats/tensor_type.h"

namespace kiln::host {

struct Lines {
  int64_t outer, extent, inner;  // products of the extents before and after the axis

  int64_t count() const { return outer * inner; }
  // Offset of a line's first element in a tensor whose axis has `length` elements; the others
  // follow `inner` apart.
  int64_t start(int64_t line, int64_t length) const {
    return line / inner * length * inner + line % inner;
  }
};

// REQUIRES: 0 <= axis < rank.
inline Lines lines_along(const Shape& shape, int64_t axis) {
  Lines lines{1, shape[axis], 1};
  for (int64_t i = 0; i < axis; ++i) lines.outer *= shape[i];
  for (size_t i = axis + 1; i < shape.size(); ++i) lines.inner *= shape[i];
  return lines;
}

}  // namespace kiln::host
