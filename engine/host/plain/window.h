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

// The window of that kernel, by the attributes strides, dilations and pads (all begins, then all
// ends, not negative), each as long as the kernel has axes.
inline Result<Window> read_window(const Operation& o, std::vector<int64_t> kernel) {
  const auto rank = static_cast<int64_t>(kernel.size());
  Window w;
  w.kernel = std::move(kernel);
  KILN_ASSIGN_OR_RETURN(w.strides, ints_attribute(o, "strides", rank, 1, kMaxAmount));
  KILN_ASSIGN_OR_RETURN(w.dilations, ints_attribute(o, "dilations", rank, 1, kMaxAmount));
  KILN_ASSIGN_OR_RETURN(const auto pads, ints_attribute(o, "pads", 2 * rank, 0, kMaxAmount));
  w.begin.assign(pads.begin(), pads.begin() + rank);
  w.end.assign(pads.begin() + rank, pads.end());
  return w;
}

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
