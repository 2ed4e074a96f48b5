#include "builder/clean/rewrite.h"

#include <algorithm>

namespace kiln::clean {

Result<ValueId> Site::emit(ir::Op op, std::vector<ValueId> inputs) {
  const std::string name = node().name;
  KILN_ASSIGN_OR_RETURN(const NodeId added,
                        graph.add_node(name, node().origins, std::move(op), std::move(inputs)));
  return graph.result(added);
}

Result<ValueId> Site::broadcast_to(ValueId value, const Shape& shape) {
  if (graph.type(value).shape == shape) return value;
  return emit(ir::Broadcast{shape}, {value});
}

void erase_with_producers(Graph& graph, NodeId node) {
  std::vector<NodeId> pending{node};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (graph.node(id).erased) continue;
    const auto inputs = graph.node(id).inputs;
    graph.erase(id);
    for (ValueId input : inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer == ir::kNoNode || graph.node(producer).erased) continue;
      const auto& outputs = graph.node(producer).outputs;
      const bool dead = std::all_of(outputs.begin(), outputs.end(),
                                    [&](ValueId output) { return ir::unused(graph, output); });
      if (dead) pending.push_back(producer);
    }
  }
}

Result<bool> rewrite_nodes(Graph& graph, std::span<const Rule> rules) {
  bool changed = false;
  for (NodeId id : graph.topological_order()) {
    if (graph.node(id).erased || graph.node(id).outputs.size() != 1) continue;
    const ValueId old = graph.result(id);
    if (ir::unused(graph, old)) continue;
    for (Rule rule : rules) {
      Site site(graph, id);
      Result<ValueId> replacement = rule(site);
      if (!replacement.ok()) {
        return std::move(replacement).error().context("node '" + graph.node(id).name + "'");
      }
      if (*replacement == kNoValue) continue;
      if (graph.type(*replacement) != graph.type(old)) {
        return Error{ErrorCode::kInternal, "node '" + graph.node(id).name + "': a rule replaced " +
                                               to_string(graph.type(old)) + " by " +
                                               to_string(graph.type(*replacement))};
      }
      if (graph.value(*replacement).name.empty()) {
        graph.set_value_name(*replacement, graph.value(old).name);
      }
      graph.replace_uses(old, *replacement);
      erase_with_producers(graph, id);
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace kiln::clean
