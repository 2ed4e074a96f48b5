// Few long rows on many multiprocessors: each reduction is done in parts by one kernel and finished
// by another, so that a kernel becomes several that the other families take. The order of all sums
// is fixed.
#pragma once
#include <string>
#include <vector>

#include "builder/codegen/cuda/kernel_facts.h"
#include "formats/loop_ir/loop_kernel.h"
#include "formats/result.h"

namespace kiln::codegen {

// A kernel over some of the original's buffers and pieces of the workspace.
struct PartKernel {
  struct Place {
    bool in_workspace = false;
    uint64_t at = 0;  // a buffer of the original, or a byte of the workspace
  };
  loop::LoopKernel kernel;
  std::vector<Place> places;  // by buffer
};

struct SplitKernels {
  std::vector<PartKernel> parts;  // to be run in order
  uint64_t workspace_bytes = 0;
};

// Reductions in at most `parts` parts. kUnsupported if there is none to split, or if no reduced dim
// can be cut evenly.
Result<SplitKernels> split_reductions(const loop::LoopKernel& kernel, uint32_t parts);

}  // namespace kiln::codegen
