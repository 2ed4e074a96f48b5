#include "builder/fuse/region.h"

#include <algorithm>
#include <map>
#include <set>

#include "builder/clean/merge_equal_nodes.h"
#include "builder/clean/remove_dead_code.h"
#include "builder/clean/rewrite.h"
#include "builder/ir/match.h"

namespace kiln::fuse {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::Region;
using ir::ValueId;

void add_unique(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  }
}

// Copies nodes of a graph into a body, following values from one to the other.
class BodyBuilder {
 public:
  explicit BodyBuilder(const Graph& graph) : graph_(graph), body_(std::make_shared<Graph>()) {}

  void add(NodeId id) {
    const ir::Node& node = graph_.node(id);
    std::vector<ValueId> arguments;
    for (ValueId input : node.inputs) arguments.push_back(mapped(input));
    std::vector<ValueId> results;
    if (const auto* region = std::get_if<Region>(&node.op)) {
      results = inline_graph(*body_, *region->body, arguments);
    } else {
      std::vector<TensorType> types;
      for (ValueId output : node.outputs) types.push_back(graph_.type(output));
      results = body_
                    ->node(body_->add_typed_node(node.name, node.origins, node.op,
                                                 std::move(arguments), types))
                    .outputs;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      map_[node.outputs[i]] = results[i];
      body_->set_value_name(results[i], graph_.value(node.outputs[i]).name);
    }
  }

  void mark_output(ValueId id) { body_->mark_output(map_.at(id)); }

  Graph& body() { return *body_; }
  std::shared_ptr<const Graph> take() { return body_; }
  std::vector<ValueId> inputs;  // of the graph

 private:
  ValueId mapped(ValueId id) {
    if (const auto found = map_.find(id); found != map_.end()) return found->second;
    const ir::Value& value = graph_.value(id);
    if (value.constant && value.type.elements() == 1) {
      return map_[id] = body_->add_constant(value.name, value.type, *value.constant);
    }
    inputs.push_back(id);
    return map_[id] = body_->add_input(value.name, value.type);
  }

  const Graph& graph_;
  std::shared_ptr<Graph> body_;
  std::map<ValueId, ValueId> map_;
};

// Inputs that merging equal nodes has left without a reader are dropped: a body input must be read.
bool has_idle_input(const Graph& body) {
  return std::any_of(body.inputs().begin(), body.inputs().end(),
                     [&](ValueId input) { return ir::unused(body, input); });
}

// The nodes, producers first; ties by id. Looks at nothing but them.
std::vector<NodeId> sorted(const Graph& graph, const std::set<NodeId>& nodes) {
  std::vector<NodeId> order;
  std::set<NodeId> entered;
  std::vector<std::pair<NodeId, size_t>> stack;
  for (NodeId root : nodes) {
    if (entered.insert(root).second) stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      const auto& inputs = graph.node(id).inputs;
      if (next == inputs.size()) {
        order.push_back(id);
        stack.pop_back();
        continue;
      }
      const NodeId producer = graph.value(inputs[next++]).producer;
      if (producer != ir::kNoNode && nodes.count(producer) && entered.insert(producer).second) {
        stack.emplace_back(producer, 0);
      }
    }
  }
  return order;
}

void tidy(Graph& body) {
  PassContext scratch;
  // Neither pass can fail.
  const bool merged = *clean::merge_equal_nodes(body, scratch);
  if (merged) (void)clean::remove_dead_code(body, scratch);
  body.compact();
}

std::string name_of(const Graph& graph, const RegionDraft& draft) {
  for (NodeId id : draft.members) {
    const ir::Node& node = graph.node(id);
    const auto* region = std::get_if<Region>(&node.op);
    const Region::Kind kind = region ? region->kind : kind_of(node.op);
    if (kind != Region::Kind::kLoop) return node.name;
  }
  return graph.node(draft.members.back()).name;
}

std::vector<std::string> origins_of(const Graph& graph, const RegionDraft& draft) {
  std::vector<std::string> origins;
  for (const auto* nodes : {&draft.copies, &draft.members}) {
    for (NodeId id : *nodes) add_unique(origins, graph.node(id).origins);
  }
  return origins;
}

}  // namespace

RegionDraft draft_region(const Graph& graph, std::span<const NodeId> members,
                         std::span<const NodeId> copies) {
  const std::set<NodeId> own(members.begin(), members.end());
  std::set<NodeId> all(copies.begin(), copies.end());
  all.insert(own.begin(), own.end());
  const std::vector<NodeId> order = sorted(graph, all);
  RegionDraft draft;
  BodyBuilder builder(graph);
  for (NodeId id : order) {
    builder.add(id);
    (own.count(id) ? draft.members : draft.copies).push_back(id);
  }
  for (NodeId id : draft.members) {
    for (ValueId output : graph.node(id).outputs) {
      const auto& uses = graph.value(output).uses;
      const bool read_outside = std::any_of(
          uses.begin(), uses.end(), [&](const ir::Use& use) { return !own.count(use.node); });
      if (!read_outside && !graph.is_output(output)) continue;
      builder.mark_output(output);
      draft.outputs.push_back(output);
    }
  }
  draft.inputs = builder.inputs;
  tidy(builder.body());
  draft.body = builder.take();
  if (has_idle_input(*draft.body)) {
    // Build once more from the tidy body, without what it does not read.
    auto slim = std::make_shared<Graph>();
    std::vector<ValueId> arguments, kept;
    for (size_t i = 0; i < draft.inputs.size(); ++i) {
      const ir::Value& input = draft.body->value(draft.body->inputs()[i]);
      const bool idle = ir::unused(*draft.body, draft.body->inputs()[i]);
      arguments.push_back(idle ? ValueId{0} : slim->add_input(input.name, input.type));
      if (!idle) kept.push_back(draft.inputs[i]);
    }
    for (ValueId output : inline_graph(*slim, *draft.body, arguments)) slim->mark_output(output);
    draft.inputs = std::move(kept);
    draft.body = std::move(slim);
  }
  return draft;
}

NodeId form_region(Graph& graph, const RegionDraft& draft, Region::Kind kind, std::string rule) {
  std::vector<TensorType> types;
  for (ValueId output : draft.outputs) types.push_back(graph.type(output));
  auto origins = origins_of(graph, draft);
  Region region{kind, draft.body, origins, std::move(rule)};
  const NodeId id = graph.add_typed_node(name_of(graph, draft), std::move(origins),
                                         std::move(region), draft.inputs, types);
  for (size_t i = 0; i < draft.outputs.size(); ++i) {
    const ValueId result = graph.node(id).outputs[i];
    graph.set_value_name(result, graph.value(draft.outputs[i]).name);
    graph.replace_uses(draft.outputs[i], result);
  }
  // Members still read each other; consumers go first.
  for (auto member = draft.members.rbegin(); member != draft.members.rend(); ++member) {
    graph.erase(*member);
  }
  for (auto copy = draft.copies.rbegin(); copy != draft.copies.rend(); ++copy) {
    const auto& outputs = graph.node(*copy).outputs;
    if (std::all_of(outputs.begin(), outputs.end(),
                    [&](ValueId output) { return ir::unused(graph, output); })) {
      graph.erase(*copy);
    }
  }
  return id;
}

Region::Kind kind_of(const ir::Op& op) {
  if (const auto* region = std::get_if<Region>(&op)) return region->kind;
  if (std::holds_alternative<ir::MatMul>(op)) return Region::Kind::kContraction;
  if (std::holds_alternative<ir::Conv>(op) || std::holds_alternative<ir::ConvTranspose>(op)) {
    return Region::Kind::kConvolution;
  }
  if (std::holds_alternative<ir::Attention>(op)) return Region::Kind::kAttention;
  if (std::holds_alternative<ir::PluginCall>(op)) return Region::Kind::kPlugin;
  const bool opaque = std::holds_alternative<ir::Opaque>(op) ||
                      std::holds_alternative<ir::If>(op) || std::holds_alternative<ir::Loop>(op);
  return opaque ? Region::Kind::kOpaque : Region::Kind::kLoop;
}

NodeId anchor_of(const Graph& body) {
  for (NodeId id : body.topological_order()) {
    if (kind_of(body.node(id).op) != Region::Kind::kLoop) return id;
  }
  return ir::kNoNode;
}

}  // namespace kiln::fuse
