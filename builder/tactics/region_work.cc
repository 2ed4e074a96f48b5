#include "builder/tactics/region_work.h"

#include <algorithm>

namespace kiln {
namespace {

uint64_t node_flops(const ir::Graph& body, const ir::Node& node) {
  const auto elements = [&](ir::ValueId id) {
    return static_cast<uint64_t>(body.type(id).elements());
  };
  const uint64_t out = elements(node.outputs[0]);
  if (const auto* matmul = std::get_if<ir::MatMul>(&node.op)) {
    const Shape& a = body.type(node.inputs[0]).shape;
    return 2 * out * static_cast<uint64_t>(a[a.size() - (matmul->transpose_a ? 2 : 1)]);
  }
  if (std::holds_alternative<ir::Conv>(node.op)) {
    const Shape& w = body.type(node.inputs[1]).shape;
    return w[0] == 0 ? 0 : 2 * out * (elements(node.inputs[1]) / static_cast<uint64_t>(w[0]));
  }
  if (std::holds_alternative<ir::ConvTranspose>(node.op)) {
    const Shape& w = body.type(node.inputs[1]).shape;
    return w[0] == 0 ? 0
                     : 2 * elements(node.inputs[0]) *
                           (elements(node.inputs[1]) / static_cast<uint64_t>(w[0]));
  }
  if (std::holds_alternative<ir::Attention>(node.op)) {
    const Shape &q = body.type(node.inputs[0]).shape, &v = body.type(node.inputs[2]).shape;
    return static_cast<uint64_t>(2 * q[0] * q[1] * q[2] * v[2] * (q[3] + v[3]));
  }
  if (std::holds_alternative<ir::Pointwise>(node.op)) return out;
  if (std::holds_alternative<ir::Reduce>(node.op)) return elements(node.inputs[0]);
  return 0;
}

struct Effort {
  uint64_t flops = 0, steps = 0;
};

uint64_t saturating_product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t saturating_sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

Effort effort_of(const ir::Graph& graph);

Effort effort_of(const ir::Graph& graph, const ir::Node& node) {
  if (const auto* region = std::get_if<ir::Region>(&node.op)) return effort_of(*region->body);
  if (const auto* loop = std::get_if<ir::Loop>(&node.op)) {
    const auto rounds = static_cast<uint64_t>(std::max<int64_t>(loop->trip_count, 1));
    const Effort once = effort_of(*loop->body);
    return {saturating_product(rounds, once.flops), saturating_product(rounds, once.steps)};
  }
  if (const auto* branch = std::get_if<ir::If>(&node.op)) {
    const Effort one = effort_of(*branch->then_body), other = effort_of(*branch->else_body);
    return {std::max(one.flops, other.flops), std::max(one.steps, other.steps)};
  }
  return {node_flops(graph, node), 1};
}

Effort effort_of(const ir::Graph& graph) {
  Effort sum;
  for (ir::NodeId id : graph.topological_order()) {
    const Effort one = effort_of(graph, graph.node(id));
    sum = {saturating_sum(sum.flops, one.flops), saturating_sum(sum.steps, one.steps)};
  }
  return sum;
}

// Elements of a value that the body can read: of what is only gathered from or sliced, perhaps
// behind a cast or a view, as many as come out.
uint64_t elements_read(const ir::Graph& body, ir::ValueId id) {
  const auto whole = static_cast<uint64_t>(body.type(id).elements());
  const auto outputs = body.outputs();
  if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) return whole;
  uint64_t taken = 0;
  for (const ir::Use& use : body.value(id).uses) {
    const ir::Node& node = body.node(use.node);
    const bool selects = use.slot == 0 && (std::holds_alternative<ir::Gather>(node.op) ||
                                           std::holds_alternative<ir::Slice>(node.op));
    const bool keeps = std::holds_alternative<ir::Cast>(node.op) ||
                       std::holds_alternative<ir::Reshape>(node.op) ||
                       std::holds_alternative<ir::Transpose>(node.op);
    if (!selects && !keeps) return whole;
    taken += selects ? static_cast<uint64_t>(body.type(node.outputs[0]).elements())
                     : elements_read(body, node.outputs[0]);
  }
  return std::min(whole, taken);
}

uint64_t bytes_read(const ir::Graph& body, ir::ValueId input) {
  const TensorType& type = body.type(input);
  const auto elements = static_cast<int64_t>(elements_read(body, input));
  return static_cast<uint64_t>(TensorType{type.dtype, {elements}}.bytes());
}

}  // namespace

RegionWork region_work(const ir::Graph& body) {
  RegionWork work;
  for (ir::ValueId id : body.inputs()) work.bytes_read += bytes_read(body, id);
  for (ir::ValueId id : body.outputs()) {
    work.bytes_written += static_cast<uint64_t>(body.type(id).bytes());
  }
  const Effort effort = effort_of(body);
  work.flops = effort.flops;
  work.steps = effort.steps;
  return work;
}

}  // namespace kiln
