#include "builder/fuse/form_regions.h"

#include "builder/fuse/region.h"

namespace kiln::fuse {
namespace {

using ir::Graph;
using ir::NodeId;

bool wrap_all(Graph& graph);

std::shared_ptr<const Graph> wrapped_copy(const Graph& body) {
  auto copy = std::make_shared<Graph>(body);
  if (wrap_all(*copy)) copy->compact();
  return copy;
}

// The op with regions in the bodies of its control flow.
ir::Op with_wrapped_bodies(const ir::Op& op) {
  if (const auto* branch = std::get_if<ir::If>(&op)) {
    return ir::If{wrapped_copy(*branch->then_body), wrapped_copy(*branch->else_body)};
  }
  if (const auto* loop = std::get_if<ir::Loop>(&op)) {
    return ir::Loop{wrapped_copy(*loop->body), loop->carried, loop->trip_count};
  }
  return op;
}

bool has_bodies(const ir::Op& op) {
  return std::holds_alternative<ir::If>(op) || std::holds_alternative<ir::Loop>(op);
}

// The node again with bodies of regions.
NodeId replace_bodies(Graph& graph, NodeId id) {
  const ir::Node node = graph.node(id);
  std::vector<TensorType> types;
  for (ir::ValueId output : node.outputs) types.push_back(graph.type(output));
  const NodeId replaced = graph.add_typed_node(node.name, node.origins,
                                               with_wrapped_bodies(node.op), node.inputs, types);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    graph.set_value_name(graph.node(replaced).outputs[i], graph.value(node.outputs[i]).name);
    graph.replace_uses(node.outputs[i], graph.node(replaced).outputs[i]);
  }
  graph.erase(id);
  return replaced;
}

bool wrap_all(Graph& graph) {
  bool changed = false;
  for (NodeId id : graph.topological_order()) {
    if (std::holds_alternative<ir::Region>(graph.node(id).op)) continue;
    const NodeId node = has_bodies(graph.node(id).op) ? replace_bodies(graph, id) : id;
    const ir::Region::Kind kind = kind_of(graph.node(node).op);
    form_region(graph, draft_region(graph, {&node, 1}), kind, "");
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> form_regions(Graph& graph, PassContext&) { return wrap_all(graph); }

}  // namespace kiln::fuse
