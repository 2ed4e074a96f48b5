// The CUDA target's tactic providers: kernels for few and for many rows and for depthwise
// convolutions, cuBLASLt, these for convolutions that are products, cuDNN, our attention, generated
// kernels; what is around a region's anchors grouped into generated kernels, the anchors as well,
// and the host's kernels.
#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/cuda/cuda_target.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/tactics/cuda/attention_provider.h"
#include "builder/tactics/cuda/cublaslt_provider.h"
#include "builder/tactics/cuda/cudnn_provider.h"
#include "builder/tactics/cuda/depthwise_provider.h"
#include "builder/tactics/cuda/few_rows_provider.h"
#include "builder/tactics/cuda/lower_device.h"
#include "builder/tactics/cuda/many_rows_provider.h"
#include "builder/tactics/cuda/pointwise_conv_provider.h"
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

Result<Lowered> generated_lower(const TacticQuery& query, const Tactic& tactic) {
  KILN_ASSIGN_OR_RETURN(Lowered lowered, lower_loop_region(*query.region.body));
  KILN_ASSIGN_OR_RETURN(const auto kernel, kernel_of(lowered));
  std::get<HostCall>(lowered.steps.front()).operation.set(kScheduleAttribute, tactic.key);
  return lowered;
}

// The body in operations that have device code; refuses one that has none.
Result<ir::Graph> spelled_out(const ir::Region& region, Anchors anchors) {
  if (region.kind != Kind::kAttention) return spell_out_operations(*region.body, anchors);
  KILN_ASSIGN_OR_RETURN(const ir::Graph body, decompose_attention(*region.body));
  return spell_out_operations(body, anchors);
}

std::vector<Tactic> spelled_candidates(const TacticQuery& query, Anchors anchors,
                                       std::string& refusal) {
  const auto body = spelled_out(query.region, anchors);
  if (!body.ok()) {
    refusal = body.error().message;
    return {};
  }
  const char* key = query.region.kind == Kind::kAttention ? "decomposed"
                    : query.region.kind == Kind::kOpaque  ? "spelled out"
                                                          : "grouped";
  return {{key}};
}

std::vector<Tactic> grouped_candidates(const TacticQuery& query, std::string& refusal) {
  return spelled_candidates(query, Anchors::kKeep, refusal);
}

Result<Lowered> grouped_lower(const TacticQuery& query, const Tactic&) {
  KILN_ASSIGN_OR_RETURN(const ir::Graph body, spelled_out(query.region, Anchors::kKeep));
  return lower_grouped(body);
}

std::vector<Tactic> plain_candidates(const TacticQuery& query, std::string& refusal) {
  return spelled_candidates(query, Anchors::kSpellOut, refusal);
}

Result<Lowered> plain_lower(const TacticQuery& query, const Tactic&) {
  KILN_ASSIGN_OR_RETURN(const ir::Graph body, spelled_out(query.region, Anchors::kSpellOut));
  return lower_grouped(body);
}

// Runs everything, but breaks the graph.
std::vector<Tactic> host_candidates(const TacticQuery&, std::string&) { return {{"grouped"}}; }

Result<Lowered> host_lower(const TacticQuery& query, const Tactic&) {
  KILN_ASSIGN_OR_RETURN(Lowered lowered, lower_grouped(*query.region.body));
  lowered.may_use_host = true;
  return lowered;
}

constexpr TacticProvider kCudaProviders[] = {
    {"few-rows", 7, Trial::kAlways, few_rows_candidates, few_rows_lower},
    {"many-rows", 3, Trial::kAlways, many_rows_candidates, many_rows_lower},
    {"depthwise", 1, Trial::kAlways, depthwise_candidates, depthwise_lower},
    {"cublaslt", 1, Trial::kAlways, cublaslt_candidates, cublaslt_lower},
    {"pointwise-conv", 3, Trial::kAlways, pointwise_conv_candidates, pointwise_conv_lower},
    {"cudnn", 2, Trial::kAlways, cudnn_candidates, cudnn_lower},
    {"attention", 4, Trial::kAlways, attention_candidates, attention_lower},
    {"generated", 2, Trial::kAlways, generated_candidates, generated_lower},
    {"grouped", 2, Trial::kAlways, grouped_candidates, grouped_lower},
    {"plain", 1, Trial::kNever, plain_candidates, plain_lower},
    {"host", 1, Trial::kNever, host_candidates, host_lower},
};

}  // namespace

std::span<const TacticProvider> cuda_providers() { return kCudaProviders; }

}  // namespace kiln
