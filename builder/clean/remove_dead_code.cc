#include "builder/clean/remove_dead_code.h"

#include <algorithm>

#include "builder/ir/match.h"

namespace kiln::clean {

Result<bool> remove_dead_code(ir::Graph& graph, PassContext&) {
  bool changed = false;
  auto order = graph.topological_order();
  std::reverse(order.begin(), order.end());
  for (ir::NodeId id : order) {
    const auto& outputs = graph.node(id).outputs;
    const bool dead = std::all_of(outputs.begin(), outputs.end(),
                                  [&](ir::ValueId output) { return ir::unused(graph, output); });
    if (!dead) continue;
    graph.erase(id);
    changed = true;
  }
  return changed;
}

}  // namespace kiln::clean
