// Brings a lowered kernel into its normal form: what nothing reads is gone, extent-1 dims are gone,
// and dims that every map walks as one are one. Equal bodies end up as equal kernels.
#pragma once
#include "formats/loop_ir/loop_kernel.h"

namespace kiln::codegen {

void normalize(loop::LoopKernel& kernel);

}  // namespace kiln::codegen
