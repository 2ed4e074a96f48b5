// Which inputs of a generated kernel its first output may take over.
#pragma once
#include "builder/codegen/cuda/schedule.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln::codegen {

// Whether output 0 may lie in an input's memory: nothing reads an element of the input once the
// thread that writes there has done so, but for threads whose results nobody uses.
bool may_overwrite(const loop::LoopKernel& kernel, const CudaSchedule& schedule, uint32_t input);

}  // namespace kiln::codegen
