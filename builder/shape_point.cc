#include "builder/shape_point.h"

namespace kiln {

ShapePoint with_rows(const ShapePoint& point, int64_t rows) {
  ShapePoint other = point;
  for (const auto& [name, axis] : point.batch_axes) {
    int64_t& extent = other.inputs[name][static_cast<size_t>(axis)];
    extent = extent / point.batch * rows;
  }
  other.batch = rows;
  return other;
}

}  // namespace kiln
