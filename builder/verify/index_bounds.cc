#include "builder/verify/index_bounds.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>

#include "builder/verify/compare.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

size_t at(int64_t i) { return static_cast<size_t>(i); }

const Shape& input_shape(const Graph& graph, const Node& node, size_t i) {
  return graph.type(node.inputs[i]).shape;
}

int64_t extent_of_axis(const Graph& graph, const Node& node, const Operation& operation) {
  return input_shape(graph, node, 0)[at(operation.get_int("axis", 0))];
}

// The last extent of the indices says how many axes a tuple of them addresses.
int64_t smallest_addressed(const Graph& graph, const Node& node, const Operation& operation) {
  const Shape& data = input_shape(graph, node, 0);
  const int64_t first = operation.get_int("batch_dims", 0);
  const int64_t depth = input_shape(graph, node, 1).back();
  int64_t smallest = kUnbounded;
  for (int64_t a = first; a < first + depth; ++a) smallest = std::min(smallest, data[at(a)]);
  return smallest;
}

int64_t first_extent(const Graph& graph, const Node& node, const Operation&) {
  return input_shape(graph, node, 0)[0];
}

int64_t length_of_time(const Graph& graph, const Node& node, const Operation& operation) {
  return input_shape(graph, node, 0)[at(operation.get_int("time_axis", 0))] + 1;
}

int64_t length_of_axis_0(const Graph& graph, const Node& node, const Operation&) {
  return input_shape(graph, node, 0)[0] + 1;
}

int64_t indexed_elements(const Graph&, const Node&, const Operation& operation) {
  return element_count(operation.get_ints("indexed_shape"));
}

// Every operand that an operation rejects by its values (engine/host/OPERATIONS.md).
struct IndexOperand {
  std::string_view operation;
  uint32_t operand;
  int64_t (*bound)(const Graph&, const Node&, const Operation&);  // exclusive
};
constexpr IndexOperand kIndexOperands[] = {
    {"gather", 1, extent_of_axis},           {"gather_elements", 1, extent_of_axis},
    {"gather_nd", 1, smallest_addressed},    {"gru", 4, length_of_axis_0},
    {"lstm", 4, length_of_axis_0},           {"max_unpool", 1, indexed_elements},
    {"reverse_sequence", 1, length_of_time}, {"rnn", 4, length_of_axis_0},
    {"roi_align", 2, first_extent},          {"scatter_elements", 1, extent_of_axis},
    {"scatter_nd", 1, smallest_addressed},
};

int64_t bound_of_operand(const Graph& graph, const Node& node, uint32_t slot) {
  if (!std::holds_alternative<ir::Gather>(node.op) && !std::holds_alternative<ir::Opaque>(node.op))
    return kUnbounded;
  const auto operation = ir::operation_of(node.op);
  for (const IndexOperand& row : kIndexOperands) {
    if (row.operation != operation->name || row.operand != slot) continue;
    return std::max<int64_t>(row.bound(graph, node, *operation), 1);
  }
  return kUnbounded;
}

bool moves_values(const ir::Op& op) {
  return std::holds_alternative<ir::Cast>(op) || std::holds_alternative<ir::Reshape>(op) ||
         std::holds_alternative<ir::Transpose>(op) || std::holds_alternative<ir::Slice>(op) ||
         std::holds_alternative<ir::Broadcast>(op) || std::holds_alternative<ir::Concat>(op);
}

// The largest element of a constant that is seen through movement; nullopt: not constant.
std::optional<double> largest_element(const Graph& graph, ValueId id) {
  while (graph.value(id).producer != ir::kNoNode) {
    const Node& node = graph.node(graph.value(id).producer);
    if (!moves_values(node.op) || node.inputs.size() != 1) return std::nullopt;
    id = node.inputs[0];
  }
  const ir::Value& value = graph.value(id);
  if (!value.constant || value.type.elements() == 0) return std::nullopt;
  const auto elements = to_f64(value.type, value.constant->data());
  return *std::max_element(elements.begin(), elements.end());
}

// The bound that x must keep for `fn` of it and the other operand to stay below `bound`.
int64_t before_pointwise(const Graph& graph, const Node& node, ScalarFn fn, uint32_t slot,
                         int64_t bound) {
  if (bound == kUnbounded || (fn != ScalarFn::kAdd && fn != ScalarFn::kMul)) return bound;
  const auto other = largest_element(graph, node.inputs[1 - slot]);
  if (!other || *other < 1) return bound;
  const auto known = static_cast<int64_t>(std::min(*other, 1e18));
  return fn == ScalarFn::kAdd ? bound - known : (bound - 1) / known + 1;
}

bool passes_on(ScalarFn fn, uint32_t slot) {
  switch (fn) {
    case ScalarFn::kIdentity:
    case ScalarFn::kAbs:
    case ScalarFn::kFloor:
    case ScalarFn::kCeil:
    case ScalarFn::kRound:
    case ScalarFn::kAdd:
    case ScalarFn::kMul:
    case ScalarFn::kMin:
    case ScalarFn::kMax:
      return true;
    case ScalarFn::kSub:
      return slot == 0;
    case ScalarFn::kWhere:
      return slot > 0;
    default:
      return false;
  }
}

// By input of the graph; `after` are the bounds that its outputs must keep.
std::vector<int64_t> bounds_before(const Graph& graph, std::span<const int64_t> after);

// By input of a node's body whose outputs from `first` on are the node's.
std::vector<int64_t> before_body(const Graph& body, size_t first, std::span<const int64_t> after) {
  std::vector<int64_t> outputs(first, kUnbounded);
  outputs.insert(outputs.end(), after.begin(), after.end());
  return bounds_before(body, outputs);
}

// By input of an If: the condition, then the inputs that both branches take.
std::vector<int64_t> before_branches(const ir::If& branch, std::span<const int64_t> after) {
  std::vector<int64_t> bounds = before_body(*branch.then_body, 0, after);
  const std::vector<int64_t> others = before_body(*branch.else_body, 0, after);
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] = std::min(bounds[i], others[i]);
  bounds.insert(bounds.begin(), kUnbounded);
  return bounds;
}

// The bound that input `slot` must keep, given those of the node's outputs.
int64_t before_operand(const Graph& graph, const Node& node, uint32_t slot,
                       std::span<const int64_t> after) {
  const int64_t here = bound_of_operand(graph, node, slot);
  if (here != kUnbounded) return here;
  if (const auto* pointwise = std::get_if<ir::Pointwise>(&node.op)) {
    return passes_on(pointwise->fn, slot)
               ? before_pointwise(graph, node, pointwise->fn, slot, after[0])
               : kUnbounded;
  }
  const bool moves = moves_values(node.op) || std::holds_alternative<ir::Gather>(node.op) ||
                     std::holds_alternative<ir::Pad>(node.op);
  return moves ? after[0] : kUnbounded;
}

// By input of the node. Looks at each body once, so that nested ones take linear time.
std::vector<int64_t> before_node(const Graph& graph, const Node& node,
                                 std::span<const int64_t> after) {
  if (const auto* region = std::get_if<ir::Region>(&node.op)) {
    return before_body(*region->body, 0, after);
  }
  if (const auto* branch = std::get_if<ir::If>(&node.op)) return before_branches(*branch, after);
  if (const auto* loop = std::get_if<ir::Loop>(&node.op)) return before_body(*loop->body, 1, after);
  std::vector<int64_t> bounds;
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    bounds.push_back(before_operand(graph, node, slot, after));
  }
  return bounds;
}

std::vector<int64_t> bounds_before(const Graph& graph, std::span<const int64_t> after) {
  std::vector<int64_t> bounds(graph.value_count(), kUnbounded);
  const auto keep = [&](ValueId id, int64_t bound) {
    int64_t& known = bounds[ir::index_of(id)];
    known = std::min(known, std::max<int64_t>(bound, 1));
  };
  for (size_t i = 0; i < after.size(); ++i) keep(graph.outputs()[i], after[i]);
  const auto order = graph.topological_order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const Node& node = graph.node(*id);
    std::vector<int64_t> outputs;
    for (ValueId output : node.outputs) outputs.push_back(bounds[ir::index_of(output)]);
    const std::vector<int64_t> before = before_node(graph, node, outputs);
    for (size_t slot = 0; slot < before.size(); ++slot) keep(node.inputs[slot], before[slot]);
  }
  std::vector<int64_t> inputs;
  for (ValueId id : graph.inputs()) inputs.push_back(bounds[ir::index_of(id)]);
  return inputs;
}

}  // namespace

std::vector<std::optional<int64_t>> index_bounds(const Graph& graph) {
  std::vector<std::optional<int64_t>> result;
  for (int64_t bound : bounds_before(graph, {})) {
    result.push_back(bound == kUnbounded ? std::nullopt : std::optional(bound));
  }
  return result;
}

}  // namespace kiln
