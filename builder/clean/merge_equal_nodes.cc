#include "builder/clean/merge_equal_nodes.h"

#include <map>
#include <string_view>
#include <unordered_map>

#include "builder/ir/match.h"

namespace kiln::clean {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

// Larger constants are hardly ever equal and cost time to compare.
constexpr size_t kMaxConstantBytes = 64 << 10;

bool merge_constants(Graph& graph) {
  bool changed = false;
  std::unordered_map<std::string_view, std::vector<ValueId>> seen;
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const ValueId id{i};
    const ir::Value& value = graph.value(id);
    if (!value.constant || value.constant->size() > kMaxConstantBytes) continue;
    if (ir::unused(graph, id)) continue;
    auto& equals = seen[std::string_view(reinterpret_cast<const char*>(value.constant->data()),
                                         value.constant->size())];
    bool merged = false;
    for (ValueId other : equals) {
      if (graph.type(other) != value.type) continue;
      graph.replace_uses(id, other);
      changed = merged = true;
      break;
    }
    if (!merged) equals.push_back(id);
  }
  return changed;
}

bool may_merge(const ir::Node& node) {
  return !std::holds_alternative<ir::PluginCall>(node.op) && !node.inputs.empty();
}

}  // namespace

Result<bool> merge_equal_nodes(Graph& graph, PassContext&) {
  bool changed = merge_constants(graph);
  std::map<std::pair<size_t, std::vector<ValueId>>, std::vector<NodeId>> seen;
  for (NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    if (!may_merge(node)) continue;
    auto& candidates = seen[{node.op.index(), node.inputs}];
    NodeId equal = ir::kNoNode;
    for (NodeId other : candidates) {
      if (graph.node(other).op == node.op) equal = other;
    }
    if (equal == ir::kNoNode) {
      candidates.push_back(id);
      continue;
    }
    const auto outputs = node.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      graph.replace_uses(outputs[i], graph.node(equal).outputs[i]);
    }
    graph.erase(id);
    changed = true;
  }
  return changed;
}

}  // namespace kiln::clean
