// Bilinear reading of one plane at a point between its cells.
#pragma once
#include <cmath>
#include <cstdint>

namespace kiln::host {

// Cells outside of the plane count as zero.
template <class T>
double read_bilinear_zero(const T* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width))) {
    return 0;
  }
  const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
  const double fy = y - static_cast<double>(top), fx = x - static_cast<double>(left);
  const auto cell = [&](int64_t row, int64_t column) {
    const bool inside = row >= 0 && column >= 0 && row < height && column < width;
    return inside ? static_cast<double>(plane[row * width + column]) : 0.0;
  };
  return (1 - fy) * ((1 - fx) * cell(top, left) + fx * cell(top, left + 1)) +
         fy * ((1 - fx) * cell(top + 1, left) + fx * cell(top + 1, left + 1));
}

}  // namespace kiln::host
