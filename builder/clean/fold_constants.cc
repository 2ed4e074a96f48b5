#include "builder/clean/fold_constants.h"

#include <algorithm>

#include "builder/ir/match.h"
#include "builder/verify/reference.h"

namespace kiln::clean {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

// Results up to this size are folded whatever they are made from: starting a kernel takes as long
// as reading them.
constexpr int64_t kSmallBytes = 1 << 20;

bool worth_folding(const Graph& graph, const ir::Node& node) {
  int64_t read = 0, made = 0;
  for (ValueId input : node.inputs) {
    if (!graph.value(input).constant) return false;
    read += graph.type(input).bytes();
  }
  for (ValueId output : node.outputs) made += graph.type(output).bytes();
  if (std::holds_alternative<ir::Broadcast>(node.op)) return made <= read;
  // A dequantised weight may grow from four bits to 32.
  return made <= std::max(kSmallBytes, 8 * read);
}

// Views of the bytes themselves need no kernel.
bool keeps_bytes(const ir::Op& op) { return std::holds_alternative<ir::Reshape>(op); }

Result<std::vector<HostTensor>> compute(const Graph& graph, const ir::Node& node) {
  std::vector<HostTensor> inputs;
  for (ValueId input : node.inputs) {
    inputs.push_back({graph.type(input), *graph.value(input).constant});
  }
  std::vector<TensorType> types;
  for (ValueId output : node.outputs) types.push_back(graph.type(output));
  if (keeps_bytes(node.op)) return std::vector<HostTensor>{{types[0], inputs[0].bytes}};
  if (const auto* region = std::get_if<ir::Region>(&node.op)) {
    return run_reference(*region->body, inputs);
  }
  return run_reference_op(node.op, inputs, types);
}

// Folds what `may_fold` and is worth it.
Result<bool> fold_where(Graph& graph, PassContext& context, bool (*may_fold)(const ir::Op&)) {
  bool changed = false;
  for (NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    if (!may_fold(node.op) || !worth_folding(graph, node)) continue;
    auto results = compute(graph, node);
    if (!results.ok()) {  // the node fails at run time as well, if it is ever reached
      context.notes.push_back("node '" + node.name +
                              "' could not be folded: " + results.error().message);
      continue;
    }
    const auto outputs = node.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      graph.replace_uses(outputs[i], graph.add_constant(graph.value(outputs[i]).name,
                                                        (*results)[i].type, (*results)[i].bytes));
    }
    graph.erase(id);
    changed = true;
  }
  return changed;
}

bool is_operation(const ir::Op& op) { return ir::operation_of(op).has_value(); }

bool is_loop_region(const ir::Op& op) {
  const auto* region = std::get_if<ir::Region>(&op);
  return region && region->kind == ir::Region::Kind::kLoop;
}

}  // namespace

Result<bool> fold_constants(Graph& graph, PassContext& context) {
  return fold_where(graph, context, is_operation);
}

Result<bool> fold_constant_regions(Graph& graph, PassContext& context) {
  return fold_where(graph, context, is_loop_region);
}

}  // namespace kiln::clean
