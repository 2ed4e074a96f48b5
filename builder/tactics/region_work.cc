#include "builder/tactics/region_work.h"

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

}  // namespace

RegionWork region_work(const ir::Graph& body) {
  RegionWork work;
  for (ir::ValueId id : body.inputs()) {
    work.bytes_read += static_cast<uint64_t>(body.type(id).bytes());
  }
  for (ir::ValueId id : body.outputs()) {
    work.bytes_written += static_cast<uint64_t>(body.type(id).bytes());
  }
  for (ir::NodeId id : body.topological_order()) work.flops += node_flops(body, body.node(id));
  return work;
}

}  // namespace kiln
