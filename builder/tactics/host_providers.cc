// The host target's tactic providers: oneDNN, loop kernels, grouped plain kernels, plain kernels.
#include "builder/tactics/decompose_attention.h"
#include "builder/tactics/lower_grouped.h"
#include "builder/tactics/onednn_epilogue.h"
#include "builder/tactics/tactic.h"

namespace kiln {
namespace {

using Kind = ir::Region::Kind;

bool is_anchored(Kind kind) {
  return kind == Kind::kContraction || kind == Kind::kConvolution || kind == Kind::kAttention;
}

Operation onednn_operation(const ir::Node& node, Operation plain) {
  const bool is_conv = std::holds_alternative<ir::Conv>(node.op) ||
                       std::holds_alternative<ir::ConvTranspose>(node.op);
  if (!is_conv && !std::holds_alternative<ir::MatMul>(node.op)) return plain;
  plain.name = "onednn." + plain.name;
  std::vector<std::string> post_ops;
  if (node.inputs.size() == 3) post_ops.emplace_back("bias");
  plain.set("post_ops", std::move(post_ops));
  return plain;
}

std::vector<Tactic> onednn_candidates(const TacticQuery& query, std::string& refusal) {
  if (!is_anchored(query.region.kind)) {
    refusal = "covers contractions, convolutions and attention only";
    return {};
  }
  if (query.region.kind == Kind::kAttention) return {{"decomposed"}};
  std::vector<Tactic> tactics;
  if (fuse_onednn_epilogue(*query.region.body).ok()) tactics.push_back({"fused"});
  tactics.push_back({"grouped"});
  return tactics;
}

Result<Lowered> onednn_lower(const TacticQuery& query, const Tactic& tactic) {
  if (tactic.key == "fused") return fuse_onednn_epilogue(*query.region.body);
  if (tactic.key == "grouped") return lower_grouped(*query.region.body, onednn_operation);
  KILN_ASSIGN_OR_RETURN(const ir::Graph body, decompose_attention(*query.region.body));
  return lower_grouped(body, onednn_operation);
}

std::vector<Tactic> loop_candidates(const TacticQuery& query, std::string& refusal) {
  if (query.region.kind != Kind::kLoop) {
    refusal = "runs pointwise, reduction and movement bodies only";
    return {};
  }
  auto lowered = lower_loop_region(*query.region.body);
  if (lowered.ok()) return {{"loop"}};
  refusal = lowered.error().message;
  return {};
}

Result<Lowered> loop_lower(const TacticQuery& query, const Tactic&) {
  return lower_loop_region(*query.region.body);
}

std::vector<Tactic> grouped_candidates(const TacticQuery& query, std::string& refusal) {
  if (is_anchored(query.region.kind)) return {{"grouped"}};
  refusal = "has no anchor to group around";
  return {};
}

Result<Lowered> grouped_lower(const TacticQuery& query, const Tactic&) {
  return lower_grouped(*query.region.body);
}

std::vector<Tactic> plain_candidates(const TacticQuery&, std::string&) { return {{"nodes"}}; }

Result<Lowered> plain_lower(const TacticQuery& query, const Tactic&) {
  NodeLowering lowering;
  KILN_RETURN_IF_ERROR(lowering.lower_region(*query.region.body));
  return std::move(lowering).take();
}

// The last two are made of the reference's own kernels.
constexpr TacticProvider kHostProviders[] = {
    {"onednn", 1, Trial::kAlways, onednn_candidates, onednn_lower},
    {"loop", 1, Trial::kAlways, loop_candidates, loop_lower},
    {"grouped", 1, Trial::kIfSmall, grouped_candidates, grouped_lower},
    {"plain", 1, Trial::kIfSmall, plain_candidates, plain_lower},
};

}  // namespace

std::span<const TacticProvider> host_providers() { return kHostProviders; }

}  // namespace kiln
