// Which inputs of a loop kernel its first output may take over.
#pragma once
#include "formats/loop_ir/loop_kernel.h"

namespace kiln::loop {

// Output 0 may lie in an input's memory if each element is read where it is written, in the same
// block, and is not itself the value of another store that might come later. Between reductions
// rows are read again, which must not be after an early output overwrote them.
bool may_overwrite(const LoopKernel& kernel, uint32_t input);

}  // namespace kiln::loop
