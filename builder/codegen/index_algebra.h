// Arithmetic on index maps. Terms stay merged (one for each dim, divisor and modulus) and in a
// fixed order, so that equal indices compare equal.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/loop_ir/loop_kernel.h"

namespace kiln::codegen {

loop::IndexMap constant_index(int64_t value);
loop::IndexMap add(const loop::IndexMap& a, const loop::IndexMap& b);
loop::IndexMap scaled(const loop::IndexMap& map, int64_t factor);
loop::IndexMap shifted(const loop::IndexMap& map, int64_t offset);

// The row-major flat index of a point of `shape`.
loop::IndexMap flatten(std::span<const loop::IndexMap> axes, const Shape& shape);

// Dim `dim` would have to be cut into (extent / inner, inner) for the division to stay affine.
struct Cut {
  uint32_t dim = 0;
  int64_t inner = 1;
};

// map = divisor * quotient + remainder, 0 <= remainder < divisor, at every point.
struct Division {
  loop::IndexMap quotient, remainder;
  std::optional<Cut> cut;  // when set, cutting first gives affine results
};
// Nullopt when neither has a normal form.
std::optional<Division> divide(const loop::IndexMap& map, int64_t divisor,
                               const loop::LoopKernel& kernel);

}  // namespace kiln::codegen
