#include "builder/clean/fold_channel_affine.h"

#include <algorithm>
#include <cmath>

#include "builder/clean/constant_value.h"
#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

// A contraction with constant weights whose output channels can be scaled through them.
struct Anchor {
  NodeId node = ir::kNoNode;
  int64_t channels = 0;
  size_t channel_axis = 0;  // of the output
};

std::optional<Anchor> anchor_of(const Graph& graph, ValueId value) {
  const NodeId id = graph.value(value).producer;
  if (id == ir::kNoNode) return std::nullopt;
  const ir::Node& node = graph.node(id);
  const bool conv = std::holds_alternative<ir::Conv>(node.op) ||
                    std::holds_alternative<ir::ConvTranspose>(node.op);
  const bool matmul = std::holds_alternative<ir::MatMul>(node.op);
  if (!conv && !matmul) return std::nullopt;
  const ValueId weights = node.inputs[1];
  if (!graph.value(weights).constant || !ir::used_once(graph, weights)) return std::nullopt;
  if (matmul && graph.type(weights).rank() != 2) return std::nullopt;
  if (bits_of(graph.type(weights).dtype) < 16) return std::nullopt;  // codes: no room for a scale
  if (conv && node.inputs.size() > 2 && !graph.value(node.inputs[2]).constant) return std::nullopt;
  const TensorType& type = graph.type(value);
  const size_t axis = conv ? 1 : type.shape.size() - 1;
  return Anchor{id, type.shape[axis], axis};
}

// Which channel of the output weight element i belongs to.
int64_t channel_of(const Graph& graph, const Anchor& anchor, int64_t i) {
  const ir::Node& node = graph.node(anchor.node);
  const Shape& shape = graph.type(node.inputs[1]).shape;
  if (const auto* matmul = std::get_if<ir::MatMul>(&node.op)) {
    return matmul->transpose_b ? i / shape[1] : i % shape[1];
  }
  if (std::holds_alternative<ir::Conv>(node.op)) {
    return i / (element_count(shape) / shape[0]);
  }
  const int64_t groups = std::get<ir::ConvTranspose>(node.op).groups;
  const int64_t kernel = element_count(shape) / (shape[0] * shape[1]);
  const int64_t group = i / (kernel * shape[1]) / (shape[0] / groups);
  return group * shape[1] + i / kernel % shape[1];
}

// One pointwise node that scales or shifts channels: which operand is the data.
struct Step {
  NodeId node = ir::kNoNode;
  size_t data_slot = 0;
};

bool is_per_channel(const Graph& graph, ValueId constant, const TensorType& type, size_t axis) {
  if (!graph.value(constant).constant) return false;
  const Shape& shape = graph.type(constant).shape;
  if (shape.size() > type.shape.size()) return false;
  const size_t offset = type.shape.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && i + offset != axis) return false;
  }
  return true;
}

std::optional<Step> step_of(const Graph& graph, NodeId id, size_t axis) {
  const ir::Node& node = graph.node(id);
  const auto* op = std::get_if<ir::Pointwise>(&node.op);
  if (!op || !is_float(graph.type(node.outputs[0]).dtype)) return std::nullopt;
  const bool commutes = op->fn == ScalarFn::kAdd || op->fn == ScalarFn::kMul;
  if (!commutes && op->fn != ScalarFn::kSub && op->fn != ScalarFn::kDiv) return std::nullopt;
  const TensorType& type = graph.type(node.outputs[0]);
  for (size_t data : {0, 1}) {
    if (op->fn == ScalarFn::kDiv && data == 1) continue;
    if (graph.type(node.inputs[data]) == type && !graph.value(node.inputs[data]).constant &&
        is_per_channel(graph, node.inputs[1 - data], type, axis)) {
      return Step{id, data};
    }
  }
  return std::nullopt;
}

struct Affine {
  std::vector<double> scale, shift;  // by channel

  bool finite() const {
    const auto ok = [](double x) { return std::isfinite(x); };
    return std::all_of(scale.begin(), scale.end(), ok) &&
           std::all_of(shift.begin(), shift.end(), ok);
  }
  bool scales() const {
    return std::any_of(scale.begin(), scale.end(), [](double x) { return x != 1; });
  }
  bool shifts() const {
    return std::any_of(shift.begin(), shift.end(), [](double x) { return x != 0; });
  }
};

Result<> apply(const Graph& graph, const Step& step, Affine& affine) {
  const ir::Node& node = graph.node(step.node);
  KILN_ASSIGN_OR_RETURN(const auto numbers, read_doubles(graph, node.inputs[1 - step.data_slot]));
  const ScalarFn fn = std::get<ir::Pointwise>(node.op).fn;
  for (size_t i = 0; i < affine.scale.size(); ++i) {
    const double c = numbers[numbers.size() == 1 ? 0 : i];
    double &scale = affine.scale[i], &shift = affine.shift[i];
    if (fn == ScalarFn::kMul) scale *= c, shift *= c;
    if (fn == ScalarFn::kDiv) scale /= c, shift /= c;
    if (fn == ScalarFn::kAdd) shift += c;
    if (fn == ScalarFn::kSub && step.data_slot == 0) shift -= c;
    if (fn == ScalarFn::kSub && step.data_slot == 1) scale = -scale, shift = c - shift;
  }
  return Ok();
}

// The steps between an anchor and the value `last`, in order of execution.
struct Chain {
  Anchor anchor;
  std::vector<Step> steps;
};

std::optional<Chain> chain_above(const Graph& graph, ValueId last) {
  // The channel axis is known once the anchor is: try both places.
  const size_t rank = graph.type(last).shape.size();
  for (size_t axis : {size_t{1}, rank - 1}) {
    if (axis >= rank) continue;
    std::vector<Step> steps;
    ValueId at = last;
    while (true) {
      const NodeId producer = graph.value(at).producer;
      const auto step = producer == ir::kNoNode ? std::nullopt : step_of(graph, producer, axis);
      if (!step) break;
      steps.push_back(*step);
      at = graph.node(producer).inputs[step->data_slot];
      if (!ir::used_once(graph, at)) return std::nullopt;
    }
    const auto anchor = anchor_of(graph, at);
    if (!anchor || anchor->channel_axis != axis || steps.empty()) continue;
    std::reverse(steps.begin(), steps.end());
    return Chain{*anchor, std::move(steps)};
  }
  return std::nullopt;
}

bool goes_on(const Graph& graph, ValueId value, size_t axis) {
  return ir::used_once(graph, value) &&
         step_of(graph, graph.value(value).uses[0].node, axis).has_value();
}

Result<Affine> affine_of(const Graph& graph, const Chain& chain) {
  const ir::Node& node = graph.node(chain.anchor.node);
  const auto channels = static_cast<size_t>(chain.anchor.channels);
  Affine affine{std::vector<double>(channels, 1.0), std::vector<double>(channels, 0.0)};
  if (node.inputs.size() > 2) {
    KILN_ASSIGN_OR_RETURN(affine.shift, read_doubles(graph, node.inputs[2]));
  }
  for (const Step& step : chain.steps) KILN_RETURN_IF_ERROR(apply(graph, step, affine));
  return affine;
}

// The anchor's weights scaled by channel; kNoValue if one leaves the dtype's range.
Result<ValueId> scaled_weights(Site& site, const Anchor& anchor, const Affine& affine) {
  const ValueId old = site.graph.node(anchor.node).inputs[1];
  if (!affine.scales()) return old;
  KILN_ASSIGN_OR_RETURN(auto numbers, read_doubles(site.graph, old));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t channel = channel_of(site.graph, anchor, static_cast<int64_t>(i));
    numbers[i] *= affine.scale[static_cast<size_t>(channel)];
  }
  const TensorType type = site.graph.type(old);
  Graph scratch;  // so that weights that overflow leave no trace
  KILN_ASSIGN_OR_RETURN(const ValueId scaled, add_doubles(scratch, "", type, numbers));
  KILN_ASSIGN_OR_RETURN(const auto rounded, read_doubles(scratch, scaled));
  const bool fits =
      std::all_of(rounded.begin(), rounded.end(), [](double x) { return std::isfinite(x); });
  if (!fits) return kNoValue;
  return site.graph.add_constant(site.graph.value(old).name, type, *scratch.value(scaled).constant);
}

Result<ValueId> fold(Site& site) {
  if (!site.op<ir::Pointwise>()) return kNoValue;
  const auto chain = chain_above(site.graph, site.result());
  if (!chain || goes_on(site.graph, site.result(), chain->anchor.channel_axis)) return kNoValue;
  KILN_ASSIGN_OR_RETURN(const Affine affine, affine_of(site.graph, *chain));
  const ir::Node& node = site.graph.node(chain->anchor.node);
  const bool matmul = std::holds_alternative<ir::MatMul>(node.op);
  // A shift alone is an epilogue of the MatMul already.
  if (!affine.finite() || (matmul && !affine.scales())) return kNoValue;
  const ValueId x = node.inputs[0];
  const ir::Op op = node.op;
  const std::string name = node.name;
  auto origins = node.origins;
  for (const Step& step : chain->steps) {
    const auto& more = site.graph.node(step.node).origins;
    origins.insert(origins.end(), more.begin(), more.end());
  }
  KILN_ASSIGN_OR_RETURN(const ValueId weights, scaled_weights(site, chain->anchor, affine));
  if (weights == kNoValue) return kNoValue;
  std::vector<ValueId> inputs{x, weights};
  const TensorType shift_type{site.type().dtype, {chain->anchor.channels}};
  KILN_ASSIGN_OR_RETURN(const ValueId shift,
                        add_doubles(site.graph, name + ".bias", shift_type, affine.shift));
  if (!matmul && affine.shifts()) inputs.push_back(shift);
  KILN_ASSIGN_OR_RETURN(const NodeId folded,
                        site.graph.add_node(name, origins, op, std::move(inputs)));
  const ValueId result = site.graph.result(folded);
  if (!matmul || !affine.shifts()) return result;
  return site.emit(ir::Pointwise{ScalarFn::kAdd}, {result, shift});
}

}  // namespace

Result<bool> fold_channel_affine(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {fold};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
