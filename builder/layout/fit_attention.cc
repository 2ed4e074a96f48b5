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

Result<ValueId> emit(Graph& body, ir::Op op, std::vector<ValueId> inputs) {
  KILN_ASSIGN_OR_RETURN(const NodeId id,
                        body.add_node("mask", {}, std::move(op), std::move(inputs)));
  return body.result(id);
}

ValueId number(Graph& body, float value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return body.add_constant("", {DType::kF32, {}}, SharedBytes::take({bytes.begin(), bytes.end()}));
}

// Makes masks additive, each once for each dtype, and the zeros of fully masked rows a loop of
// their own behind the attention.
class Masks {
 public:
  explicit Masks(Graph& graph) : graph_(graph) {}

  Result<bool> fit(NodeId id) {
    const Region region = region_of(graph_, id);
    const ir::Node* attention = narrow_attention(region);
    if (attention == nullptr || attention->inputs.size() < 4) return false;
    const Graph& body = *region.body;
    const DType dtype = body.type(attention->inputs[0]).dtype;
    const ValueId mask = attention->inputs[3];
    const auto inputs = body.inputs();
    const auto slot = std::find(inputs.begin(), inputs.end(), mask);
    if (slot == inputs.end() || body.type(mask).dtype == dtype ||
        body.value(mask).uses.size() != 1 || body.outputs().size() != 1) {
      return false;
    }
    auto op = std::get<ir::Attention>(attention->op);
    const bool zeros = op.masked_row_zero;
    if (zeros && body.type(mask).dtype != DType::kBool) return false;
    op.masked_row_zero = false;
    const auto number = static_cast<size_t>(slot - inputs.begin());
    const ValueId old = graph_.node(id).inputs[number];
    KILN_ASSIGN_OR_RETURN(const ValueId additive, in_dtype(old, dtype));
    KILN_ASSIGN_OR_RETURN(const ValueId result, replace(id, region, op, number, additive));
    ValueId fitted = result;
    if (zeros) {
      KILN_ASSIGN_OR_RETURN(const ValueId keep, rows_kept(old));
      KILN_ASSIGN_OR_RETURN(fitted, zero_rows(result, keep));
    }
    graph_.replace_uses(graph_.result(id), fitted);
    graph_.erase(id);
    return true;
  }

 private:
  // A region of a loop; the body's last value is its result.
  ValueId add_loop(const std::string& name, std::shared_ptr<Graph> body, ValueId result,
                   std::vector<ValueId> inputs) {
    body->mark_output(result);
    const TensorType type = body->type(result);
    const NodeId id =
        graph_.add_typed_node(name, {}, Region{Kind::kLoop, std::move(body), {}, "fit-attention"},
                              std::move(inputs), std::span(&type, 1));
    return graph_.result(id);
  }

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
    return additive_[{mask, dtype}] = add_loop(source.name + " (additive)", body, value, {mask});
  }

  // Which rows have something that is not masked.
  Result<ValueId> rows_kept(ValueId mask) {
    const auto known = kept_.find(mask);
    if (known != kept_.end()) return known->second;
    const ir::Value source = graph_.value(mask);
    auto body = std::make_shared<Graph>();
    ValueId value = body->add_input(source.name, source.type);
    KILN_ASSIGN_OR_RETURN(value, emit(*body, ir::Cast{DType::kF32, true}, {value}));
    KILN_ASSIGN_OR_RETURN(
        value, emit(*body, ir::Reduce{ReduceFn::kMax, {source.type.rank() - 1}, true}, {value}));
    KILN_ASSIGN_OR_RETURN(value, emit(*body, ir::Cast{DType::kBool, true}, {value}));
    return kept_[mask] = add_loop(source.name + " (rows kept)", body, value, {mask});
  }

  Result<ValueId> zero_rows(ValueId result, ValueId keep) {
    const ir::Value source = graph_.value(result);
    auto body = std::make_shared<Graph>();
    const ValueId attention = body->add_input(source.name, source.type);
    const ValueId kept = body->add_input(graph_.value(keep).name, graph_.type(keep));
    KILN_ASSIGN_OR_RETURN(const ValueId wide,
                          emit(*body, ir::Cast{DType::kF32, true}, {attention}));
    KILN_ASSIGN_OR_RETURN(ValueId value, emit(*body, ir::Pointwise{ScalarFn::kWhere},
                                              {kept, wide, number(*body, 0)}));
    KILN_ASSIGN_OR_RETURN(value, emit(*body, ir::Cast{source.type.dtype, true}, {value}));
    return add_loop(source.name + " (masked rows 0)", body, value, {result, keep});
  }

  // The region again with another mask and op; the old one is left for the caller to replace.
  Result<ValueId> replace(NodeId id, Region region, const ir::Attention& op, size_t number,
                          ValueId mask) {
    auto body = std::make_shared<Graph>();
    std::map<ValueId, ValueId> map;
    std::vector<ValueId> inputs = graph_.node(id).inputs;
    inputs[number] = mask;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId input = region.body->inputs()[i];
      map[input] = body->add_input(region.body->value(input).name, graph_.type(inputs[i]));
    }
    for (NodeId part : region.body->topological_order()) {
      const ir::Node& node = region.body->node(part);
      std::vector<ValueId> arguments;
      for (ValueId argument : node.inputs) {
        if (!map.count(argument)) {
          const ir::Value& constant = region.body->value(argument);
          map[argument] = body->add_constant(constant.name, constant.type, *constant.constant);
        }
        arguments.push_back(map[argument]);
      }
      const bool attention = std::holds_alternative<ir::Attention>(node.op);
      KILN_ASSIGN_OR_RETURN(const NodeId copy,
                            body->add_node(node.name, node.origins,
                                           attention ? ir::Op(op) : node.op, std::move(arguments)));
      map[node.outputs[0]] = body->result(copy);
    }
    body->mark_output(map[region.body->outputs()[0]]);
    region.body = body;
    const ir::Node node = graph_.node(id);
    const TensorType type = graph_.type(node.outputs[0]);
    const NodeId copy =
        graph_.add_typed_node(node.name, node.origins, region, inputs, std::span(&type, 1));
    graph_.set_value_name(graph_.result(copy), graph_.value(node.outputs[0]).name);
    return graph_.result(copy);
  }

  Graph& graph_;
  std::map<std::pair<ValueId, DType>, ValueId> additive_;
  std::map<ValueId, ValueId> kept_;
};

// Loops that zero rows take in the views behind them.
bool join_views(Graph& graph) {
  for (NodeId id : graph.topological_order()) {
    const Region& region = region_of(graph, id);
    if (region.kind != Kind::kLoop || region.rule != "fit-attention") continue;
    const ValueId result = graph.result(id);
    if (!ir::used_once(graph, result)) continue;
    const NodeId reader = graph.value(result).uses[0].node;
    if (!only_moves(region_of(graph, reader))) continue;
    const std::vector<NodeId> members = {id, reader};
    if (fuse::makes_cycle(graph, members)) continue;
    fuse::form_region(graph, fuse::draft_region(graph, members), Kind::kLoop, "fit-attention");
    return true;
  }
  return false;
}

}  // namespace

Result<bool> fit_attention(Graph& graph, PassContext& context) {
  if (!context.options.library_layouts) return false;
  bool changed = false;
  Masks masks(graph);
  for (NodeId id : graph.topological_order()) {
    KILN_ASSIGN_OR_RETURN(const bool fitted, masks.fit(id));
    changed |= fitted;
  }
  while (join_views(graph)) changed = true;
  while (absorb_one(graph)) changed = true;
  return changed;
}

}  // namespace kiln::layout
