// Resize along one axis: which input cells an output cell reads, with which weights.
#pragma once
#include <cstdint>
#include <vector>

namespace kiln::host {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class Coordinates : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kCropAndResize
};
enum class NearestMode : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct ResizeRule {
  ResizeMode mode;
  Coordinates coordinates;
  NearestMode nearest;
  bool antialias, exclude_outside;
  float cubic_a;
};

struct ResizeAxis {
  int64_t in, out;
  float scale;               // as the model gives it; out / in where it gives sizes
  float roi_start, roi_end;  // of kCropAndResize, as parts of the axis
};

// Output i reads cells[i * taps + t] with weights[i * taps + t]. Cells are inside of the input.
struct ResizeTable {
  int64_t taps = 1;
  std::vector<int64_t> cells;
  std::vector<double> weights;
  std::vector<bool> outside;  // kCropAndResize: output i lies outside; empty if none does
};

// REQUIRES: in > 0, scale > 0.
ResizeTable resize_table(const ResizeRule& rule, const ResizeAxis& axis);

}  // namespace kiln::host
