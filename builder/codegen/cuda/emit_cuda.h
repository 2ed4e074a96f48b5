// From a loop kernel and a schedule to CUDA C++. The text needs no header of any toolkit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "builder/codegen/cuda/schedule.h"
#include "formats/loop_ir/loop_kernel.h"
#include "formats/result.h"

namespace kiln::codegen {

// One launch; dimensions are blocks and threads along x.
struct CudaLaunch {
  std::string entry;
  uint64_t blocks = 1;
  uint32_t threads = 1;
  uint32_t cluster = 1;  // blocks that run together, which the kernel itself asks for
  friend bool operator==(const CudaLaunch&, const CudaLaunch&) = default;
};

// Every entry takes one pointer for each buffer of the kernel, in order, and then, if
// workspace_bytes is not 0, one to the workspace. Buffers begin on 256-byte boundaries.
// Launches follow each other in order and share one workspace, which must keep its contents from
// the first to the last. All shared memory is static.
struct CudaSource {
  std::string text;                  // to be compiled behind device_prelude()
  std::vector<CudaLaunch> launches;  // none if the kernel has no points
  uint64_t workspace_bytes = 0;
};

// kUnsupported if the schedule does not suit the kernel. Gathered indices out of range read some
// element in range. Thread-safe. REQUIRES: loop::verify(kernel) was ok.
Result<CudaSource> emit_cuda(const loop::LoopKernel& kernel, const CudaSchedule& schedule);

}  // namespace kiln::codegen
