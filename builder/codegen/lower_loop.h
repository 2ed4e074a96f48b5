// From a region's body to one loop kernel. All data movement becomes index maps, so that a kernel
// has loads, scalar functions, reductions and stores only.
#pragma once
#include <cstdint>

#include "builder/ir/graph.h"
#include "formats/loop_ir/loop_kernel.h"
#include "formats/result.h"

namespace kiln {

// Lowers a body of Pointwise, Cast, Reduce, Transpose, Reshape, Broadcast, Slice, Pad, Concat and
// Gather nodes. The kernel's buffers are the body's inputs, then its outputs, in order.
// What has no normal form is refused with kUnsupported and a one-line reason, so this is also the
// legality test of loop fusion: pure, and fast enough to be asked often.
// The result passes loop::verify. Thread-safe.
Result<loop::LoopKernel> lower_to_loop(const ir::Graph& body);

}  // namespace kiln
