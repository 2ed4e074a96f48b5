#include "builder/layout/turn_weights.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "builder/clean/absorb_transposes.h"
#include "builder/clean/remove_dead_code.h"
#include "builder/fuse/region.h"
#include "builder/ir/match.h"

namespace kiln::layout {
namespace {

using fuse::region_of;
using ir::Graph;
using ir::NodeId;
using ir::Region;
using ir::ValueId;

// The body's input that its matmul alone reads, as a right side stored by rows; kNoValue if none.
ValueId turnable_input(const Graph& body) {
  const NodeId anchor = fuse::anchor_of(body);
  const auto* op = anchor == ir::kNoNode ? nullptr : std::get_if<ir::MatMul>(&body.node(anchor).op);
  if (op == nullptr || op->transpose_b) return ir::kNoValue;
  const ValueId right = body.node(anchor).inputs[1];
  const auto inputs = body.inputs();
  const bool given = std::find(inputs.begin(), inputs.end(), right) != inputs.end();
  return given && ir::used_once(body, right) ? right : ir::kNoValue;
}

// Whether a node reads a value only where its matmul's right side is.
bool reads_as_weights(const Graph& graph, const ir::Use& use) {
  if (graph.node(use.node).outputs.size() != 1) return false;
  const Graph& body = *region_of(graph, use.node).body;
  const ValueId input = turnable_input(body);
  return input != ir::kNoValue && body.inputs()[use.slot] == input;
}

bool is_turnable(const Graph& graph, ValueId id) {
  const ir::Value& value = graph.value(id);
  const DType dtype = value.type.dtype;
  const bool fits = is_float(dtype) && bits_of(dtype) <= 32;
  if (!value.constant || !fits || value.type.rank() != 2 || graph.is_output(id)) return false;
  return std::all_of(value.uses.begin(), value.uses.end(),
                     [&](const ir::Use& use) { return reads_as_weights(graph, use); });
}

TensorType turned(const TensorType& type) { return {type.dtype, {type.shape[1], type.shape[0]}}; }

// In squares that stay in the cache. Constants can lie on any byte.
template <class Element>
SharedBytes turned(const SharedBytes& bytes, int64_t rows, int64_t columns) {
  constexpr int64_t kEdge = 64, kSize = sizeof(Element);
  std::vector<std::byte> made(bytes.size());
  for (int64_t row = 0; row < rows; row += kEdge) {
    for (int64_t column = 0; column < columns; column += kEdge) {
      for (int64_t c = column; c < std::min(column + kEdge, columns); ++c) {
        for (int64_t r = row; r < std::min(row + kEdge, rows); ++r) {
          std::memcpy(made.data() + (c * rows + r) * kSize,
                      bytes.data() + (r * columns + c) * kSize, sizeof(Element));
        }
      }
    }
  }
  return SharedBytes::take(std::move(made));
}

ValueId turned_constant(Graph& graph, ValueId id) {
  const ir::Value value = graph.value(id);
  const int64_t rows = value.type.shape[0], columns = value.type.shape[1];
  const int bits = bits_of(value.type.dtype);
  SharedBytes bytes = bits == 8    ? turned<uint8_t>(*value.constant, rows, columns)
                      : bits == 16 ? turned<uint16_t>(*value.constant, rows, columns)
                                   : turned<uint32_t>(*value.constant, rows, columns);
  return graph.add_constant(value.name, turned(value.type), std::move(bytes));
}

// The body for weights stored by columns.
Result<std::shared_ptr<const Graph>> turned_body(const Graph& old, PassContext& context) {
  const ValueId weights = turnable_input(old);
  auto body = std::make_shared<Graph>();
  std::vector<ValueId> arguments;
  for (ValueId input : old.inputs()) {
    const ir::Value& value = old.value(input);
    const TensorType type = input == weights ? turned(value.type) : value.type;
    ValueId& argument = arguments.emplace_back(body->add_input(value.name, type));
    if (input != weights) continue;
    KILN_ASSIGN_OR_RETURN(const NodeId node,
                          body->add_node("by rows", {}, ir::Transpose{{1, 0}}, {argument}));
    argument = body->result(node);
  }
  for (ValueId output : ir::inline_graph(*body, old, arguments)) body->mark_output(output);
  KILN_RETURN_IF_ERROR(clean::absorb_transposes(*body, context));
  KILN_RETURN_IF_ERROR(clean::remove_dead_code(*body, context));
  body->compact();
  return std::shared_ptr<const Graph>(body);
}

}  // namespace

Result<bool> turn_weights(Graph& graph, PassContext& context) {
  if (!context.options.library_layouts) return false;
  std::map<ValueId, ValueId> made;  // by the weights as they were
  for (NodeId id : graph.topological_order()) {
    const ir::Node node = graph.node(id);
    Region region = std::get<Region>(node.op);
    const ValueId input = turnable_input(*region.body);
    if (input == ir::kNoValue || node.outputs.size() != 1) continue;
    const auto inputs = region.body->inputs();
    const auto slot = std::find(inputs.begin(), inputs.end(), input) - inputs.begin();
    const ValueId weights = node.inputs[static_cast<size_t>(slot)];
    if (!made.contains(weights)) {
      if (!is_turnable(graph, weights)) continue;
      made[weights] = turned_constant(graph, weights);
    }
    std::vector<ValueId> arguments = node.inputs;
    arguments[static_cast<size_t>(slot)] = made[weights];
    KILN_ASSIGN_OR_RETURN(region.body, turned_body(*region.body, context));
    const TensorType type = graph.type(graph.result(id));
    const NodeId turned_node = graph.add_typed_node(node.name, node.origins, std::move(region),
                                                    std::move(arguments), std::span(&type, 1));
    graph.set_value_name(graph.result(turned_node), graph.value(node.outputs[0]).name);
    graph.replace_uses(node.outputs[0], graph.result(turned_node));
    graph.erase(id);
  }
  return !made.empty();
}

}  // namespace kiln::layout
