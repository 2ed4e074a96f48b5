// A loop kernel without reductions as a device function of one point: what a kernel that was
// written by hand makes of each element that it has computed.
#pragma once
#include <cstdint>
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

}  // namespace kiln::codegen
