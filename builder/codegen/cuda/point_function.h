// A loop kernel without reductions as a device function of one point, or of two neighbours: what a
// kernel that was written by hand makes of each element that it has computed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "formats/loop_ir/loop_kernel.h"
#include "formats/result.h"

namespace kiln::codegen {

// `text` defines struct Operands, the kernel's buffers but for one input, and
//   KILN_DEVICE void finish(const Operands& operands, float element, int at)
// which stores what the kernel's outputs are where element `at` of that input is `element`. For
// several lanes it also defines struct Elements with a member of[lanes], and `element` is such
// ones, neighbours of which `at` is the first, a multiple of `lanes`.
struct PointFunction {
  std::string text;
  // Of a kernel that passes its operands on: "const void* b1, void* b2", and "b1, b2".
  std::string parameters, arguments;
};

// kUnsupported: the kernel reduces, or not every point has an element of `input`, a buffer of
// floats of up to 32 bits, to itself, or lanes do not lie side by side. REQUIRES:
// loop::verify(kernel) was ok.
Result<PointFunction> point_function(const loop::LoopKernel& kernel, uint32_t input,
                                     uint32_t lanes = 1);

// `text` defines struct Operands as above, and
//   KILN_DEVICE void finish(const Operands& operands, const float (&elements)[parts], int row,
//                           int column)
// which stores what the kernel's outputs are at `row` and `column`. Rows of the product have
// `parts` parts as long as those are; elements[i] is the one at this row and column of part i.
struct RowFunction {
  uint32_t parts = 1;  // or 2
  std::string text, parameters, arguments;
};

// kUnsupported: as point_function, but that points may have an element of each half of a row of
// `input`, which has `columns`.
Result<RowFunction> row_function(const loop::LoopKernel& kernel, uint32_t input, int64_t columns);

// `text` defines struct Operands and struct Elements of two lanes as above, and
//   KILN_DEVICE Pack<D, 2> finish(const Operands& operands, const Elements (&elements)[parts],
//                                 unsigned residual, int row, int column)
// which returns the kernel's output, of type D, at `row` and `column`, which is even, and behind
// it. Rows of the product have `parts` parts as long as the output's rows are; elements[i] are
// those at this row and column of part i. `residual` has the bits of buffer number `residual`
// there, which has elements of 16 bits that lie as the output's do, which has 16 bits as well.
struct PairFunction {
  uint32_t parts = 1;          // or 2
  DType result = DType::kF32;  // of 8, 16 or 32 bits
  std::string text, parameters, arguments;
  std::optional<uint32_t> residual;
};

// kUnsupported: as point_function, but that points may have an element of each half of a row of
// `input`, which has `columns`; or the output's elements are no floats of up to 32 bits or do not
// lie as those of `input`, or of one half, do; or there are several outputs.
Result<PairFunction> pair_function(const loop::LoopKernel& kernel, uint32_t input, int64_t columns);

}  // namespace kiln::codegen
