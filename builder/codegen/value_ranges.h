// What is known of a loop kernel's floats ahead of time, so that device code need not be ready for
// more: between which ends a value lies, and how wrong it may be.
#pragma once
#include <limits>
#include <vector>

#include "formats/loop_ir/loop_kernel.h"

namespace kiln::codegen {

// The value lies between the ends, both included, or is NaN. Computed values may be beyond them by
// rounding and by their tolerance: users stay accurate up to kRangeSlack of an end beyond it.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  double largest() const;  // of the magnitudes
  bool is_one_sign() const { return low >= 0 || high <= 0; }
  friend bool operator==(const Range&, const Range&) = default;
};
inline constexpr double kRangeSlack = 1.0 / 64;

// By expr; all of the real numbers where nothing is known.
std::vector<Range> value_ranges(const loop::LoopKernel& kernel);

// By expr: the relative error that its value may have such that stored 16-bit floats are within
// half a unit in the last place of what they would be, before they are rounded to it. 0: none
// beyond that of f32, as wherever the value ends in anything wider, in a comparison, or in a
// difference that could cancel. A quarter of it is left to the function itself, the rest passed on
// to its arguments.
std::vector<double> value_tolerances(const loop::LoopKernel& kernel,
                                     const std::vector<Range>& ranges);

}  // namespace kiln::codegen
