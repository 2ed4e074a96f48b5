#include "builder/driver/region_precision.h"

#include <algorithm>

namespace kiln {
namespace {

// The narrowest float among a region's outputs, "-" where it has none.
std::string narrowest_result(const ir::Graph& graph, const ir::Node& node) {
  std::string narrowest = "-";
  int bits = 1024;
  for (ir::ValueId id : node.outputs) {
    const DType dtype = graph.type(id).dtype;
    if (!is_float(dtype) || bits_of(dtype) >= bits) continue;
    bits = bits_of(dtype);
    narrowest = to_string(dtype);
  }
  return narrowest;
}

std::string_view stored_as(Precision precision) {
  if (precision == Precision::kFp16) return to_string(DType::kF16);
  return to_string(precision == Precision::kBf16 ? DType::kBF16 : DType::kF32);
}

// Of the operands of a product in the body.
bool multiplies(const ir::Graph& body, DType dtype) {
  const auto order = body.topological_order();
  return std::any_of(order.begin(), order.end(), [&](ir::NodeId id) {
    const ir::Node& node = body.node(id);
    const bool product = std::holds_alternative<ir::MatMul>(node.op) ||
                         std::holds_alternative<ir::Conv>(node.op) ||
                         std::holds_alternative<ir::ConvTranspose>(node.op) ||
                         std::holds_alternative<ir::Attention>(node.op);
    return product && body.type(node.inputs[0]).dtype == dtype;
  });
}

}  // namespace

void describe_precision(const ir::Graph& graph, const ScheduledRegion& region,
                        const PrecisionWish& wish, report::Region& record) {
  const ir::Node& node = graph.node(region.node);
  record.precision_asked = stored_as(wish.precision);
  record.precision_realised = narrowest_result(graph, node);
  for (const PrecisionDecision& decision : wish.decisions) {
    if (decision.region != node.name) continue;
    record.precision_asked = to_string(decision.asked);
    record.precision_realised = to_string(decision.realised);
    record.precision_reason = decision.reason;
    record.precision_damage = decision.damage;
  }
  const ir::Graph& body = *std::get<ir::Region>(node.op).body;
  if (multiplies(body, DType::kF8E4M3FN)) {
    record.precision_asked = record.precision_realised = to_string(DType::kF8E4M3FN);
    record.precision_reason.clear();
  }
  if (wish.precision != Precision::kTf32 || !multiplies(body, DType::kF32)) return;
  const std::string_view tf32 = to_string(Precision::kTf32);
  record.precision_asked = tf32;
  if (uses_tf32(region.lowered)) {
    record.precision_realised = tf32;
  } else {
    record.precision_reason =
        wish.on_gpu ? "the fastest tactic computes in f32" : "target host computes in f32";
  }
}

}  // namespace kiln
