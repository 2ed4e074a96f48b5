// The CUDA target's tactic providers: cuBLASLt, cuDNN, generated kernels, and what is around a
// region's anchors grouped into generated kernels.
#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/cuda/cuda_target.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/tactics/cuda/attention_provider.h"
#include "builder/tactics/cuda/cublaslt_provider.h"
#include "builder/tactics/cuda/cudnn_provider.h"
#include "builder/tactics/cuda/lower_device.h"
#include "builder/tactics/decompose_attention.h"
#include "builder/tactics/lower_grouped.h"
#include "builder/tactics/spell_out/spell_out.h"

namespace kiln {
namespace {

using Kind = ir::Region::Kind;

Result<loop::LoopKernel> kernel_of(const Lowered& lowered) {
  const std::string encoded =
      std::get<HostCall>(lowered.steps.front()).operation.get_string("kernel", "");
  return loop::decode_loop_kernel(std::as_bytes(std::span(encoded)));
}

std::vector<codegen::CudaSchedule> schedules_of(const TacticQuery& query,
                                                const loop::LoopKernel& kernel) {
  return codegen::cuda_schedules(kernel, {.multiprocessors = query.device.multiprocessors});
}

std::vector<Tactic> generated_candidates(const TacticQuery& query, std::string& refusal) {
  if (query.region.kind != Kind::kLoop) {
    refusal = "runs pointwise, reduction and movement bodies only";
    return {};
  }
  const auto lowered = lower_loop_region(*query.region.body);
  if (!lowered.ok()) {
    refusal = lowered.error().message;
    return {};
  }
  const auto kernel = kernel_of(*lowered);
  std::vector<Tactic> tactics;
  if (!kernel.ok()) return tactics;
  for (const auto& schedule : schedules_of(query, *kernel)) {
    tactics.push_back({codegen::to_text(schedule)});
  }
  return tactics;
}

// Compiles every schedule at once, so that the candidates after this one find theirs ready.
void compile_ahead(const TacticQuery& query, const loop::LoopKernel& kernel) {
  std::vector<std::string> texts;
  for (const auto& schedule : schedules_of(query, kernel)) {
    auto source = codegen::emit_cuda(kernel, schedule);
    if (source.ok() && !source->launches.empty()) texts.push_back(std::move(source->text));
  }
  query.cuda->compiler->cache().compile_all(texts, query.device.threads);
}

Result<Lowered> generated_lower(const TacticQuery& query, const Tactic& tactic) {
  KILN_ASSIGN_OR_RETURN(Lowered lowered, lower_loop_region(*query.region.body));
  KILN_ASSIGN_OR_RETURN(const auto kernel, kernel_of(lowered));
  compile_ahead(query, kernel);
  std::get<HostCall>(lowered.steps.front()).operation.set(kScheduleAttribute, tactic.key);
  return lowered;
}

// "grouped" is right for every region, but runs on the host what has no other form.
std::vector<Tactic> grouped_candidates(const TacticQuery& query, std::string&) {
  if (query.region.kind == Kind::kAttention) return {{"decomposed"}};
  const bool opaque = query.region.kind == Kind::kOpaque;
  if (opaque && spell_out_operations(*query.region.body).ok())
    return {{"spelled out"}, {"grouped"}};
  return {{"grouped"}};
}

Result<Lowered> grouped_lower(const TacticQuery& query, const Tactic& tactic) {
  if (tactic.key == "grouped") return lower_grouped(*query.region.body);
  if (tactic.key == "spelled out") {
    KILN_ASSIGN_OR_RETURN(const ir::Graph body, spell_out_operations(*query.region.body));
    return lower_grouped(body);
  }
  KILN_ASSIGN_OR_RETURN(const ir::Graph body, decompose_attention(*query.region.body));
  return lower_grouped(body);
}

constexpr TacticProvider kCudaProviders[] = {
    {"cublaslt", 1, false, cublaslt_candidates, cublaslt_lower},
    {"cudnn", 1, false, cudnn_candidates, cudnn_lower},
    {"attention", 1, false, attention_candidates, attention_lower},
    {"generated", 1, false, generated_candidates, generated_lower},
    {"grouped", 1, false, grouped_candidates, grouped_lower},
};

}  // namespace

std::span<const TacticProvider> cuda_providers() { return kCudaProviders; }

}  // namespace kiln
