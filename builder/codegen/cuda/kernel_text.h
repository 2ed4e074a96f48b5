// What the texts of all families have in common.
#pragma once
#include <string>

#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/codegen/cuda/kernel_facts.h"

namespace kiln::codegen {

// kUnsupported.
Error unsuited(const CudaSchedule& schedule, const std::string& why);

// A source of one launch: the body, of lines that end in "\n", as a kernel over the facts' buffers.
// No launch if there are no blocks.
Result<CudaSource> one_kernel(const KernelFacts& facts, const CudaSchedule& schedule,
                              int64_t blocks, const std::string& body);

// The families that emit_cuda chooses from.
Result<CudaSource> emit_spread(const KernelFacts& facts, const CudaSchedule& schedule);
Result<CudaSource> emit_tiles(const KernelFacts& facts, const CudaSchedule& schedule);

}  // namespace kiln::codegen
