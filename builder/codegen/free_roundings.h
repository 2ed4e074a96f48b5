// Where a loop kernel's floats need not be rounded as its exprs say.
#pragma once
#include <vector>

#include "formats/loop_ir/loop_kernel.h"

namespace kiln::codegen {

// By expr: whether the value may be rounded to 16 bits or not, and once for a product and a sum or
// twice: all that comes of it is stored as 16-bit floats, through functions without steps. What is
// stored then changes in its last place, on the whole towards the exact result.
std::vector<bool> free_roundings(const loop::LoopKernel& kernel);

}  // namespace kiln::codegen
