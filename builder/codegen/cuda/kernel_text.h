// What the texts of all families have in common.
#pragma once
#include <string>

#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/codegen/cuda/kernel_facts.h"

namespace kiln::codegen {

// kUnsupported.
Error unsuited(const CudaSchedule& schedule, const std::string& why);

// The blocks that share a row.
uint32_t cluster_of(const CudaSchedule& schedule);

// What stands around a kernel's body, which calls its buffers b0, b1, ...
struct KernelFrame {
  std::string entry;
  std::string parameters;
  std::string prologue;  // lines that define b0, b1, ... where they are no parameters
};

// A source of one launch: the body, of lines that end in "\n", in its frame. No launch if there are
// no blocks.
Result<CudaSource> one_kernel(const KernelFrame& frame, const CudaSchedule& schedule,
                              int64_t blocks, const std::string& body);

// The families that emit_cuda chooses from.
Result<CudaSource> emit_spread(const KernelFacts& facts, const CudaSchedule& schedule,
                               const KernelFrame& frame);
Result<CudaSource> emit_tiles(const KernelFacts& facts, const CudaSchedule& schedule,
                              const KernelFrame& frame);
Result<CudaSource> emit_split(const loop::LoopKernel& kernel, const CudaSchedule& schedule);
// Any family but kSplit.
Result<CudaSource> emit_framed(const loop::LoopKernel& kernel, const CudaSchedule& schedule,
                               const KernelFrame& frame);

}  // namespace kiln::codegen
