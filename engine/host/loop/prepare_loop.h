// The loop interpreter as a host kernel.
#pragma once
#include <span>

#include "engine/host/kernel.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln::host {

// Operands are the kernel's buffers: inputs, then outputs, of its dtypes and element counts.
// kInvalidArgument if the kernel is not sound or the operands do not fit.
// run() fails only where a gathered index is out of range; large kernels run on several threads,
// with results that do not depend on how many.
Result<KernelPtr> prepare_loop_kernel(const loop::LoopKernel& kernel,
                                      std::span<const TensorType> inputs,
                                      std::span<const TensorType> outputs);

// The operation "loop": attribute "kernel" holds an encoded LoopKernel.
Result<KernelPtr> prepare_loop(const Prepare& prepare);

}  // namespace kiln::host
