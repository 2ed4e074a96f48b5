// extract and inline_graph: moving groups of nodes between graphs.
#include <algorithm>
#include <map>

#include "builder/ir/graph.h"

namespace kiln::ir {
namespace {

// Copies a node of `from` into `to`; `mapped` gives the value that stands for an input.
template <class Mapped>
NodeId copy_node(const Graph& from, const Node& node, Graph& to, const Mapped& mapped) {
  std::vector<ValueId> inputs;
  for (ValueId input : node.inputs) inputs.push_back(mapped(input));
  std::vector<TensorType> types;
  for (ValueId output : node.outputs) types.push_back(from.type(output));
  return to.add_typed_node(node.name, node.origins, node.op, std::move(inputs), types);
}

}  // namespace

Extracted extract(const Graph& graph, std::span<const NodeId> nodes,
                  std::span<const ValueId> outputs) {
  std::vector<bool> wanted(graph.node_count(), false);
  for (NodeId id : nodes) wanted[index_of(id)] = true;
  Extracted result;
  std::map<ValueId, ValueId> map;
  const auto mapped = [&](ValueId id) {
    if (const auto found = map.find(id); found != map.end()) return found->second;
    const Value& value = graph.value(id);
    ValueId copy;
    if (value.constant && value.type.elements() == 1) {
      copy = result.graph.add_constant(value.name, value.type, *value.constant);
    } else {
      copy = result.graph.add_input(value.name, value.type);
      result.inputs.push_back(id);
    }
    map.emplace(id, copy);
    return copy;
  };
  for (NodeId id : graph.topological_order()) {
    if (!wanted[index_of(id)]) continue;
    const Node& node = graph.node(id);
    const NodeId copy = copy_node(graph, node, result.graph, mapped);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = result.graph.node(copy).outputs[i];
      result.graph.set_value_name(output, graph.value(node.outputs[i]).name);
      map[node.outputs[i]] = output;
    }
  }
  for (ValueId id : outputs) result.graph.mark_output(mapped(id));
  return result;
}

std::vector<ValueId> inline_graph(Graph& graph, const Graph& body,
                                  std::span<const ValueId> arguments) {
  std::map<ValueId, ValueId> map;
  for (size_t i = 0; i < arguments.size(); ++i) map[body.inputs()[i]] = arguments[i];
  const auto mapped = [&](ValueId id) {
    const auto found = map.find(id);
    if (found != map.end()) return found->second;
    const Value& value = body.value(id);
    return map[id] = graph.add_constant(value.name, value.type, *value.constant);
  };
  for (NodeId id : body.topological_order()) {
    const Node& node = body.node(id);
    const NodeId copy = copy_node(body, node, graph, mapped);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      map[node.outputs[i]] = graph.node(copy).outputs[i];
    }
  }
  std::vector<ValueId> outputs;
  for (ValueId id : body.outputs()) outputs.push_back(mapped(id));
  return outputs;
}

}  // namespace kiln::ir
