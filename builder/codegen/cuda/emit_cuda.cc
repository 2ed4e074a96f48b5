#include "builder/codegen/cuda/emit_cuda.h"

#include "builder/codegen/cuda/kernel_text.h"

namespace kiln::codegen {
namespace {

constexpr int64_t kMaxBlocks = 0x7FFFFFFF;

bool is_power_of_two(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

Result<> check(const CudaSchedule& s) {
  if (!is_power_of_two(s.threads) || s.threads < 32 || s.threads > 1024) {
    return unsuited(s, "threads must be a power of 2 in [32, 1024]");
  }
  if (!is_power_of_two(s.vector) || s.vector > 32) {
    return unsuited(s, "vector must be a power of 2 up to 32");
  }
  if (s.unroll < 1 || s.unroll > 16) return unsuited(s, "unroll must be in [1, 16]");
  if (!is_power_of_two(s.group) || s.group > s.threads) {
    return unsuited(s, "group must be a power of 2 up to threads");
  }
  return Ok();
}

}  // namespace

Error unsuited(const CudaSchedule& schedule, const std::string& why) {
  return {ErrorCode::kUnsupported, "schedule '" + to_text(schedule) + "': " + why};
}

Result<CudaSource> one_kernel(const KernelFacts& facts, const CudaSchedule& schedule,
                              int64_t blocks, const std::string& body) {
  CudaSource source;
  if (blocks == 0) return source;
  if (blocks > kMaxBlocks) return unsuited(schedule, "more than 2^31 blocks");
  const std::string entry = "kiln_" + std::string(to_string(schedule.family));
  std::string parameters;
  for (size_t b = 0; b < facts.kernel.buffers.size(); ++b) {
    if (b > 0) parameters += ", ";
    parameters += facts.kernel.buffers[b].output ? "void* b" : "const void* b";
    parameters += std::to_string(b);
  }
  source.text = "KILN_KERNEL(" + std::to_string(schedule.threads) + ") " + entry + "(" +
                parameters + ") {\n  begin_kernel();\n" + body + "}\n";
  source.launches.push_back({entry, static_cast<uint64_t>(blocks), schedule.threads});
  return source;
}

Result<CudaSource> emit_cuda(const loop::LoopKernel& kernel, const CudaSchedule& schedule) {
  KILN_RETURN_IF_ERROR(check(schedule));
  const KernelFacts facts(kernel);
  return schedule.family == Family::kTiles ? emit_tiles(facts, schedule)
                                           : emit_spread(facts, schedule);
}

}  // namespace kiln::codegen
