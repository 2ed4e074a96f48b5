// The window of convolutions and poolings: strides, dilations and padding over the spatial axes.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/host/attributes.h"

namespace kiln::host {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, begin, end;  // one entry a spatial axis

  size_t rank() const { return kernel.size(); }
  int64_t taps() const {
    int64_t count = 1;
    for (int64_t extent : kernel) count *= extent;
    return count;
  }
  // Input cells between a window's first and last tap, both included.
  int64_t span(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

// Walks the points of `extents` in row-major order.
class Odometer {
 public:
  explicit Odometer(const Shape& extents) : extents_(extents), at_(extents.size(), 0) {}
  const std::vector<int64_t>& at() const { return at_; }
  void set(int64_t index) {
    for (size_t i = at_.size(); i-- > 0; index /= extents_[i]) at_[i] = index % extents_[i];
  }
  void next() {
    for (size_t i = at_.size(); i-- > 0;) {
      if (++at_[i] < extents_[i]) return;
      at_[i] = 0;
    }
  }

 private:
  const Shape& extents_;
  std::vector<int64_t> at_;
};

}  // namespace kiln::host
