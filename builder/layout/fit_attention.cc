#include "builder/layout/fit_attention.h"

#include <algorithm>
#include <limits>
#include <map>

#include "builder/fuse/cycle.h"
#include "builder/fuse/region.h"
#include "builder/ir/match.h"
#include "builder/tactics/strided_view.h"

namespace kiln::layout {
namespace {

using fuse::region_of;
using ir::Graph;
using ir::NodeId;
using ir::Region;
using ir::ValueId;
using Kind = Region::Kind;

// The Attention node of a region of f16 or bf16; null for others.
const ir::Node* narrow_attention(const Region& region) {
  if (region.kind != Kind::kAttention) return nullptr;
  const NodeId anchor = fuse::anchor_of(*region.body);
  if (anchor == ir::kNoNode) return nullptr;
  const ir::Node& node = region.body->node(anchor);
  const DType dtype = region.body->type(node.inputs[0]).dtype;
  return dtype == DType::kF16 || dtype == DType::kBF16 ? &node : nullptr;
}

// The input of a region's body that the mask of its attention is, but for views and repetition;
// kNoValue if the mask is computed in the body or the input is read elsewhere too.
ValueId mask_input(const Graph& body, const ir::Node& attention) {
  ValueId at = attention.inputs[3];
  while (body.value(at).producer != ir::kNoNode) {
    const ir::Node& node = body.node(body.value(at).producer);
    const bool passes = std::holds_alternative<ir::Reshape>(node.op) ||
                        std::holds_alternative<ir::Broadcast>(node.op);
    if (!passes || body.value(at).uses.size() != 1) return ir::kNoValue;
    at = node.inputs[0];
  }
  return !body.value(at).constant && body.value(at).uses.size() == 1 ? at : ir::kNoValue;
}

// A region that repeats its only input along axes of its own, and splits or joins axes.
bool only_repeats(const Region& region) {
  if (region.kind != Kind::kLoop || region.body->inputs().size() != 1 ||
      region.body->outputs().size() != 1) {
    return false;
  }
  const auto order = region.body->topological_order();
  return std::all_of(order.begin(), order.end(), [&](NodeId id) {
    const ir::Op& op = region.body->node(id).op;
    return std::holds_alternative<ir::Broadcast>(op) || std::holds_alternative<ir::Reshape>(op);
  });
}

bool only_moves(const Region& region) {
  if (region.kind != Kind::kLoop || region.body->outputs().size() != 1 ||
      region.body->inputs().size() != 1) {
    return false;
  }
  const auto order = region.body->topological_order();
  return std::all_of(order.begin(), order.end(), [&](NodeId id) {
    const ir::Op& op = region.body->node(id).op;
    return std::holds_alternative<ir::Slice>(op) || std::holds_alternative<ir::Reshape>(op) ||
           std::holds_alternative<ir::Transpose>(op);
  });
}

// Whether all operands and the result of the draft's attention lie in its inputs and its output.
bool is_strided(const Graph& body) {
  const NodeId anchor = fuse::anchor_of(body);
  std::vector<NodeId> passed;
  if (anchor == ir::kNoNode || body.outputs().size() != 1) return false;
  const ir::Node& node = body.node(anchor);
  for (size_t i = 0; i < 3; ++i) {
    if (!view_of_input(body, node.inputs[i], passed).ok()) return false;
  }
  return view_in_output(body, node.outputs[0], passed).ok();
}

bool absorb(Graph& graph, NodeId attention, NodeId other) {
  const std::vector<NodeId> members = {attention, other};
  if (fuse::makes_cycle(graph, members)) return false;
  const fuse::RegionDraft draft = fuse::draft_region(graph, members);
  if (!is_strided(*draft.body)) return false;
  fuse::form_region(graph, draft, Kind::kAttention, "fit-attention");
  return true;
}

// Takes in one region of views next to an attention; false when there is none left.
bool absorb_one(Graph& graph) {
  for (NodeId id : graph.topological_order()) {
    if (narrow_attention(region_of(graph, id)) == nullptr) continue;
    for (ValueId input : graph.node(id).inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer == ir::kNoNode || !ir::used_once(graph, input)) continue;
      if (only_moves(region_of(graph, producer)) && absorb(graph, id, producer)) return true;
    }
    const ValueId result = graph.result(id);
    if (graph.node(id).outputs.size() != 1 || !ir::used_once(graph, result)) continue;
    const NodeId reader = graph.value(result).uses[0].node;
    if (only_moves(region_of(graph, reader)) && absorb(graph, id, reader)) return true;
  }
  return false;
}

// Takes the repetition of a mask into the regions that read it: there it is strides.
bool absorb_repetition(Graph& graph, NodeId id) {
  const ir::Node* attention = narrow_attention(region_of(graph, id));
  if (attention == nullptr || attention->inputs.size() < 4) return false;
  const Graph& body = *region_of(graph, id).body;
  const ValueId mask = mask_input(body, *attention);
  if (mask == ir::kNoValue) return false;
  const auto slot = std::find(body.inputs().begin(), body.inputs().end(), mask);
  const ValueId input = graph.node(id).inputs[static_cast<size_t>(slot - body.inputs().begin())];
  const NodeId producer = graph.value(input).producer;
  if (producer == ir::kNoNode || !only_repeats(region_of(graph, producer))) return false;
  const fuse::RegionDraft draft = fuse::draft_region(graph, {&id, 1}, {&producer, 1});
  const NodeId anchor = fuse::anchor_of(*draft.body);
  std::vector<NodeId> passed;
  const ValueId drafted = draft.body->node(anchor).inputs[3];
  if (!repeated_view_of_input(*draft.body, drafted, passed).ok()) return false;
  fuse::form_region(graph, draft, Kind::kAttention, "fit-attention");
  return true;
}

Result<ValueId> emit(Graph& body, ir::Op op, std::vector<ValueId> inputs) {
  KILN_ASSIGN_OR_RETURN(const NodeId id,
                        body.add_node("mask", {}, std::move(op), std::move(inputs)));
  return body.result(id);
}

ValueId number(Graph& body, float value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return body.add_constant("", {DType::kF32, {}}, SharedBytes::take({bytes.begin(), bytes.end()}));
}

// Makes masks additive, each once for each dtype.
class Masks {
 public:
  explicit Masks(Graph& graph) : graph_(graph) {}

  Result<bool> fit(NodeId id) {
    const Region region = region_of(graph_, id);
    const ir::Node* attention = narrow_attention(region);
    if (attention == nullptr || attention->inputs.size() < 4) return false;
    const Graph& body = *region.body;
    const DType dtype = body.type(attention->inputs[0]).dtype;
    const ValueId mask = mask_input(body, *attention);
    if (mask == ir::kNoValue || body.type(mask).dtype == dtype || body.outputs().size() != 1) {
      return false;
    }
    const auto inputs = body.inputs();
    const auto slot = std::find(inputs.begin(), inputs.end(), mask);
    // A narrow type would make very low numbers -inf, and rows of those zeros.
    const bool zeros = std::get<ir::Attention>(attention->op).masked_row_zero;
    if (zeros && body.type(mask).dtype != DType::kBool) return false;
    const auto number = static_cast<size_t>(slot - inputs.begin());
    const ValueId old = graph_.node(id).inputs[number];
    KILN_ASSIGN_OR_RETURN(const ValueId additive, in_dtype(old, dtype));
    KILN_ASSIGN_OR_RETURN(const ValueId replaced, replace(id, region, number, additive));
    graph_.replace_uses(graph_.result(id), replaced);
    graph_.erase(id);
    return true;
  }

 private:
  Result<ValueId> in_dtype(ValueId mask, DType dtype) {
    const auto known = additive_.find({mask, dtype});
    if (known != additive_.end()) return known->second;
    const ir::Value source = graph_.value(mask);
    auto body = std::make_shared<Graph>();
    ValueId value = body->add_input(source.name, source.type);
    if (source.type.dtype == DType::kBool) {
      const ValueId masked = number(*body, -std::numeric_limits<float>::infinity());
      KILN_ASSIGN_OR_RETURN(
          value, emit(*body, ir::Pointwise{ScalarFn::kWhere}, {value, number(*body, 0), masked}));
    }
    KILN_ASSIGN_OR_RETURN(value, emit(*body, ir::Cast{dtype, true}, {value}));
    body->mark_output(value);
    const TensorType type = body->type(value);
    const NodeId id = graph_.add_typed_node(
        source.name + " (additive)", {}, Region{Kind::kLoop, std::move(body), {}, "fit-attention"},
        {mask}, std::span(&type, 1));
    return additive_[{mask, dtype}] = graph_.result(id);
  }

  // The region again with another mask; the old one is left for the caller to replace.
  Result<ValueId> replace(NodeId id, Region region, size_t number, ValueId mask) {
    const ir::Node node = graph_.node(id);
    std::vector<ValueId> inputs = node.inputs;
    inputs[number] = mask;
    KILN_ASSIGN_OR_RETURN(region.body, body_of(*region.body, inputs));
    const TensorType type = graph_.type(node.outputs[0]);
    const NodeId copy =
        graph_.add_typed_node(node.name, node.origins, region, inputs, std::span(&type, 1));
    graph_.set_value_name(graph_.result(copy), graph_.value(node.outputs[0]).name);
    return graph_.result(copy);
  }

  // The body for these inputs: views of the mask have its new type.
  Result<std::shared_ptr<const Graph>> body_of(const Graph& old,
                                               const std::vector<ValueId>& inputs) const {
    auto body = std::make_shared<Graph>();
    std::map<ValueId, ValueId> copies;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId input = old.inputs()[i];
      copies[input] = body->add_input(old.value(input).name, graph_.type(inputs[i]));
    }
    for (NodeId id : old.topological_order()) {
      const ir::Node& node = old.node(id);
      std::vector<ValueId> arguments;
      for (ValueId input : node.inputs) {
        const ir::Value& value = old.value(input);
        if (value.constant && !copies.count(input)) {
          copies[input] = body->add_constant(value.name, value.type, *value.constant);
        }
        arguments.push_back(copies.at(input));
      }
      KILN_ASSIGN_OR_RETURN(const NodeId copy,
                            body->add_node(node.name, node.origins, node.op, arguments));
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        copies[node.outputs[i]] = body->node(copy).outputs[i];
      }
    }
    for (ValueId output : old.outputs()) body->mark_output(copies.at(output));
    return std::shared_ptr<const Graph>(std::move(body));
  }

  Graph& graph_;
  std::map<std::pair<ValueId, DType>, ValueId> additive_;
};

}  // namespace

Result<bool> fit_attention(Graph& graph, PassContext& context) {
  if (!context.options.library_layouts) return false;
  bool changed = false;
  for (NodeId id : graph.topological_order()) changed |= absorb_repetition(graph, id);
  Masks masks(graph);
  for (NodeId id : graph.topological_order()) {
    KILN_ASSIGN_OR_RETURN(const bool fitted, masks.fit(id));
    changed |= fitted;
  }
  while (absorb_one(graph)) changed = true;
  return changed;
}

}  // namespace kiln::layout
