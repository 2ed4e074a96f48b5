#include "builder/codegen/cuda/emit_cuda.h"

#include <algorithm>

#include "builder/codegen/cuda/kernel_text.h"

namespace kiln::codegen {
namespace {

constexpr int64_t kMaxBlocks = 0x7FFFFFFF;

// An odd number of 4-bit elements leaves half a byte, which must not differ from run to run.
std::string clear_unused_halves(const loop::LoopKernel& kernel) {
  std::string text;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const loop::Buffer& buffer = kernel.buffers[b];
    if (!buffer.output || bits_of(buffer.dtype) != 4 || buffer.elements % 2 == 0) continue;
    text += "  if (blockIdx.x == 0 && threadIdx.x == 0) store_half_byte(b" + std::to_string(b) +
            ", " + std::to_string(buffer.elements) + "ll, 0u);\n";
  }
  return text;
}

// A hint needs packs, and a kernel that goes over its inputs once.
Result<> check_stream(const KernelFacts& facts, const CudaSchedule& s) {
  if (!s.stream) return Ok();
  const bool one_pass = s.keep || facts.levels == 1;
  if (s.vector == 1 || !one_pass) return unsuited(s, "it streams nothing");
  if (std::ranges::none_of(facts.touches_once, [](bool once) { return once; })) {
    return unsuited(s, "nothing is touched once");
  }
  return Ok();
}

bool is_power_of_two(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

Result<> check(const CudaSchedule& s) {
  if (!is_power_of_two(s.threads) || s.threads < 32 || s.threads > 1024) {
    return unsuited(s, "threads must be a power of 2 in [32, 1024]");
  }
  if (!is_power_of_two(s.vector) || s.vector > 32) {
    return unsuited(s, "vector must be a power of 2 up to 32");
  }
  if (s.unroll < 1 || s.unroll > 16) return unsuited(s, "unroll must be in [1, 16]");
  const bool rows = s.family == Family::kRows;
  if (!is_power_of_two(s.group) || s.group > s.threads * (rows ? kMaxCluster : 1)) {
    return unsuited(s, "group must be a power of 2 up to threads, of rows up to 8 times those");
  }
  return Ok();
}

}  // namespace

Error unsuited(const CudaSchedule& schedule, const std::string& why) {
  return {ErrorCode::kUnsupported, "schedule '" + to_text(schedule) + "': " + why};
}

uint32_t cluster_of(const CudaSchedule& schedule) {
  return std::max(1u, schedule.group / schedule.threads);
}

Result<CudaSource> one_kernel(const KernelFrame& frame, const CudaSchedule& schedule,
                              int64_t blocks, const std::string& body) {
  CudaSource source;
  if (blocks == 0) return source;
  if (blocks > kMaxBlocks) return unsuited(schedule, "more than 2^31 blocks");
  const uint32_t cluster = cluster_of(schedule);
  const std::string threads = std::to_string(schedule.threads);
  source.text = cluster == 1
                    ? "KILN_KERNEL(" + threads + ") "
                    : "KILN_CLUSTER_KERNEL(" + threads + ", " + std::to_string(cluster) + ") ";
  source.text += frame.entry + "(" + frame.parameters + ") {\n  begin_kernel();\n" +
                 frame.prologue + body + "}\n";
  source.launches.push_back(
      {frame.entry, static_cast<uint64_t>(blocks), schedule.threads, cluster});
  return source;
}

Result<CudaSource> emit_framed(const loop::LoopKernel& kernel, const CudaSchedule& schedule,
                               const KernelFrame& around) {
  KILN_RETURN_IF_ERROR(check(schedule));
  const KernelFacts facts(kernel);
  KILN_RETURN_IF_ERROR(check_stream(facts, schedule));
  KernelFrame frame = around;
  frame.prologue += clear_unused_halves(kernel);
  return schedule.family == Family::kTiles ? emit_tiles(facts, schedule, frame)
                                           : emit_spread(facts, schedule, frame);
}

Result<CudaSource> emit_cuda(const loop::LoopKernel& kernel, const CudaSchedule& schedule) {
  if (schedule.family == Family::kSplit) return emit_split(kernel, schedule);
  KernelFrame frame{"kiln_" + std::string(to_string(schedule.family)), "", ""};
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    frame.parameters += b > 0 ? ", " : "";
    frame.parameters += kernel.buffers[b].output ? "void* b" : "const void* b";
    frame.parameters += std::to_string(b);
  }
  return emit_framed(kernel, schedule, frame);
}

}  // namespace kiln::codegen
