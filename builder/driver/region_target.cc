#include "builder/driver/region_target.h"

#include <algorithm>

#include "builder/tactics/spell_out/spell_out.h"

namespace kiln {
namespace {

using Kind = ir::Region::Kind;

// The dtype of the operands of the body's product; kF32 where there is none.
DType operand_dtype(const ir::Graph& body) {
  for (ir::NodeId id : body.topological_order()) {
    const ir::Node& node = body.node(id);
    const bool product = std::holds_alternative<ir::MatMul>(node.op) ||
                         std::holds_alternative<ir::Conv>(node.op) ||
                         std::holds_alternative<ir::ConvTranspose>(node.op) ||
                         std::holds_alternative<ir::Attention>(node.op);
    if (product) return body.type(node.inputs[0]).dtype;
  }
  return DType::kF32;
}

double flops_per_s(DType operands, bool tf32, const report::PeakRates& rates) {
  if (operands == DType::kF32) return tf32 ? rates.tf32_flops_per_s : rates.f32_flops_per_s;
  if (operands == DType::kF16 || operands == DType::kBF16) return rates.f16_flops_per_s;
  return bits_of(operands) == 8 ? rates.byte_flops_per_s : 0;
}

// The names of the operations that run on the host: "'nonzero', 'loop'".
std::string host_operations(const Lowered& lowered) {
  std::vector<std::string> names;
  for (const LocalStep& step : lowered.steps) {
    std::string name;
    if (const auto* call = std::get_if<HostCall>(&step)) name = call->operation.name;
    if (const auto* call = std::get_if<HostPluginCall>(&step)) name = call->name;
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (!name.empty() && !known) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

std::string refusal_of(const report::Region& record, const std::string& provider) {
  for (const report::Refusal& refusal : record.refusals) {
    if (refusal.provider == provider) return refusal.reason;
  }
  for (const report::Candidate& candidate : record.candidates) {
    if (candidate.provider == provider) return provider + " lost: " + candidate.reason;
  }
  return "";
}

std::string why_on_host(const ir::Region& region, const report::Region& record) {
  switch (region.kind) {
    case Kind::kLoop:
      return refusal_of(record, "generated");
    case Kind::kContraction:
      return refusal_of(record, "cublaslt");
    case Kind::kConvolution:
      return refusal_of(record, "cudnn");
    case Kind::kPlugin:
      return "the plugin brings code for the host";
    default:
      break;
  }
  const auto spelled = spell_out_operations(*region.body);
  if (!spelled.ok()) return spelled.error().message;
  for (const report::Candidate& candidate : record.candidates) {
    if (candidate.key == "spelled out") return "as loops on the GPU: " + candidate.reason;
  }
  return "";
}

}  // namespace

void describe_roofline(const ir::Region& region, const Lowered& lowered,
                       const report::PeakRates& rates, report::Region& record) {
  if (record.chosen < 0 || !record.host_reason.empty()) return;
  const double us = record.candidates[static_cast<size_t>(record.chosen)].median_us;
  const double rate = flops_per_s(operand_dtype(*region.body), uses_tf32(lowered), rates);
  if (us <= 0 || rates.bytes_per_s <= 0) return;
  const double memory_us =
      1e6 * static_cast<double>(record.bytes_read + record.bytes_written) / rates.bytes_per_s;
  const double compute_us = rate > 0 ? 1e6 * static_cast<double>(record.flops) / rate : 0;
  record.roofline_share = std::max(memory_us, compute_us) / us;
  record.roofline_bound = memory_us >= compute_us ? "memory" : "compute";
}

void describe_host_steps(const ir::Region& region, const Lowered& lowered, report::Region& record) {
  const std::string operations = host_operations(lowered);
  if (operations.empty()) return;
  const std::string why = why_on_host(region, record);
  record.host_reason = operations + " runs on the host" + (why.empty() ? "" : ": " + why);
}

}  // namespace kiln
