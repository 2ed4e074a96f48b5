#include "engine/host/plain/resize_axis.h"

#include <algorithm>
#include <cmath>

namespace kiln::host {
namespace {

// Single precision throughout, as runtimes have it: at the edge between two cells a more exact
// coordinate picks another one.
float original_coordinate(const ResizeRule& rule, const ResizeAxis& axis, int64_t i) {
  const float x = static_cast<float>(i), in = static_cast<float>(axis.in);
  // The length before it was rounded down to whole cells.
  const float length = axis.scale * in;
  switch (rule.coordinates) {
    case Coordinates::kHalfPixel:
      return (x + 0.5F) / axis.scale - 0.5F;
    case Coordinates::kHalfPixelSymmetric: {
      const float adjustment = static_cast<float>(axis.out) / length;
      return in / 2 * (1 - adjustment) + (x + 0.5F) / axis.scale - 0.5F;
    }
    case Coordinates::kPytorchHalfPixel:
      return axis.out > 1 ? (x + 0.5F) / axis.scale - 0.5F : 0.0F;
    case Coordinates::kAlignCorners:
      return axis.out == 1 ? 0.0F : x * (in - 1) / (length - 1);
    case Coordinates::kAsymmetric:
      return x / axis.scale;
    case Coordinates::kCropAndResize:
      break;
  }
  const float extent = axis.roi_end - axis.roi_start;
  if (axis.out == 1) return 0.5F * (axis.roi_start + axis.roi_end) * (in - 1);
  return axis.roi_start * (in - 1) + x * extent * (in - 1) / (length - 1);
}

int64_t nearest_cell(NearestMode mode, float x) {
  switch (mode) {
    case NearestMode::kRoundPreferFloor:
      return static_cast<int64_t>(std::ceil(x - 0.5F));
    case NearestMode::kRoundPreferCeil:
      return static_cast<int64_t>(std::floor(x + 0.5F));
    case NearestMode::kFloor:
      return static_cast<int64_t>(std::floor(x));
    default:
      return static_cast<int64_t>(std::ceil(x));
  }
}

// The weight of a cell at that distance.
double filter(const ResizeRule& rule, double distance) {
  const double d = std::abs(distance), a = rule.cubic_a;
  if (rule.mode == ResizeMode::kLinear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

// Weights of the cells around x, divided by their sum.
void weigh(const ResizeRule& rule, const ResizeAxis& axis, float x, double stretch, int64_t taps,
           int64_t* cells, double* weights) {
  const auto left = static_cast<int64_t>(std::ceil(x)) - 1;  // the last cell before x
  const int64_t first = left - taps / 2 + 1;
  double sum = 0;
  for (int64_t t = 0; t < taps; ++t) {
    const int64_t cell = first + t;
    const bool outside = cell < 0 || cell >= axis.in;
    cells[t] = std::clamp<int64_t>(cell, 0, axis.in - 1);
    weights[t] = outside && rule.exclude_outside
                     ? 0
                     : filter(rule, (static_cast<double>(cell) - x) * stretch);
    sum += weights[t];
  }
  if (sum == 0) return;
  for (int64_t t = 0; t < taps; ++t) weights[t] /= sum;
}

}  // namespace

ResizeTable resize_table(const ResizeRule& rule, const ResizeAxis& axis) {
  ResizeTable table;
  const double stretch = rule.antialias ? std::min<double>(1, axis.scale) : 1;
  if (rule.mode != ResizeMode::kNearest) {
    const double support = rule.mode == ResizeMode::kLinear ? 1 : 2;
    table.taps = -2 * static_cast<int64_t>(std::floor(-support / stretch) + 1) + 2;
  }
  table.cells.resize(axis.out * table.taps);
  table.weights.assign(axis.out * table.taps, 1);
  const float far = 2.0F * static_cast<float>(axis.in) + 4;  // nothing beyond differs
  for (int64_t i = 0; i < axis.out; ++i) {
    float x = original_coordinate(rule, axis, i);
    x = std::isnan(x) ? 0 : std::clamp(x, -far, far);
    if (rule.coordinates == Coordinates::kCropAndResize &&
        (x < 0 || x > static_cast<float>(axis.in - 1))) {
      table.outside.resize(axis.out);
      table.outside[i] = true;
    }
    int64_t* cells = &table.cells[i * table.taps];
    if (rule.mode == ResizeMode::kNearest) {
      *cells = std::clamp<int64_t>(nearest_cell(rule.nearest, x), 0, axis.in - 1);
    } else {
      weigh(rule, axis, x, stretch, table.taps, cells, &table.weights[i * table.taps]);
    }
  }
  return table;
}

}  // namespace kiln::host
