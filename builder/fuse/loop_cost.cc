#include "builder/fuse/loop_cost.h"

#include <algorithm>
#include <vector>

namespace kiln::fuse {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

constexpr double kKernelBytes = 16 << 10;  // what starting a kernel costs
constexpr double kOperationBytes = 0.5;    // one addition
constexpr double kTranscendental = 12;     // additions' worth
constexpr size_t kCheapNodes = 6;

bool is_transcendental(ScalarFn fn) {
  switch (fn) {
    case ScalarFn::kExp:
    case ScalarFn::kLog:
    case ScalarFn::kSin:
    case ScalarFn::kCos:
    case ScalarFn::kTan:
    case ScalarFn::kAsin:
    case ScalarFn::kAcos:
    case ScalarFn::kAtan:
    case ScalarFn::kSinh:
    case ScalarFn::kCosh:
    case ScalarFn::kTanh:
    case ScalarFn::kAsinh:
    case ScalarFn::kAcosh:
    case ScalarFn::kAtanh:
    case ScalarFn::kErf:
    case ScalarFn::kSigmoid:
    case ScalarFn::kPow:
      return true;
    default:
      return false;
  }
}

// Additions' worth of work for one element.
double weight(const ir::Op& op) {
  if (const auto* pointwise = std::get_if<ir::Pointwise>(&op)) {
    return is_transcendental(pointwise->fn) ? kTranscendental : 1;
  }
  if (std::holds_alternative<ir::Cast>(op) || std::holds_alternative<ir::Reduce>(op)) return 1;
  if (std::holds_alternative<ir::Gather>(op) || std::holds_alternative<ir::Concat>(op)) return 2;
  return 0;
}

bool is_alias(const Graph& body) {
  const auto order = body.topological_order();
  return std::all_of(order.begin(), order.end(), [&](NodeId id) {
    return std::holds_alternative<ir::Reshape>(body.node(id).op);
  });
}

double bytes(const TensorType& type, int64_t elements) {
  return static_cast<double>(elements) * bits_of(type.dtype) / 8;
}

// The number of points that a body's loop nest visits: its largest output or reduced operand.
int64_t loop_points(const Graph& body) {
  int64_t points = 0;
  for (ValueId output : body.outputs()) points = std::max(points, body.type(output).elements());
  for (NodeId id : body.topological_order()) {
    const ir::Node& node = body.node(id);
    if (!std::holds_alternative<ir::Reduce>(node.op)) continue;
    points = std::max(points, body.type(node.inputs[0]).elements());
  }
  return points;
}

// How many elements of `value` the body reads: of slices only what they keep.
int64_t elements_read(const Graph& body, ValueId value) {
  const int64_t all = body.type(value).elements();
  int64_t read = 0;
  for (const ir::Use& use : body.value(value).uses) {
    const ir::Node& reader = body.node(use.node);
    if (std::holds_alternative<ir::Slice>(reader.op)) {
      read += body.type(reader.outputs[0]).elements();
    } else if (std::holds_alternative<ir::Reshape>(reader.op) ||
               std::holds_alternative<ir::Transpose>(reader.op)) {
      read += elements_read(body, reader.outputs[0]);
    } else {
      return all;
    }
    if (read >= all) return all;
  }
  return body.is_output(value) ? all : read;
}

}  // namespace

double loop_cost(const Graph& body) {
  if (is_alias(body)) return 0;
  const int64_t points = loop_points(body);
  double cost = kKernelBytes;
  for (ValueId input : body.inputs()) {
    cost += bytes(body.type(input), std::min(elements_read(body, input), points));
  }
  for (ValueId output : body.outputs())
    cost += bytes(body.type(output), body.type(output).elements());
  // What follows a reduction is computed once a row; the rest at every point, even where its own
  // tensor is smaller.
  std::vector<bool> reduced(body.value_count(), false);
  for (NodeId id : body.topological_order()) {
    const ir::Node& node = body.node(id);
    const ValueId result = body.result(id);
    const bool reduces = std::holds_alternative<ir::Reduce>(node.op);
    const bool per_row = std::any_of(node.inputs.begin(), node.inputs.end(),
                                     [&](ValueId input) { return reduced[index_of(input)]; }) &&
                         body.type(result).elements() < points;
    reduced[index_of(result)] = reduces || per_row;
    const int64_t times = per_row ? body.type(result).elements() : points;
    cost += kOperationBytes * weight(node.op) * static_cast<double>(times);
  }
  return cost;
}

bool is_cheap(const Graph& body) {
  size_t nodes = 0;
  for (NodeId id : body.topological_order()) {
    const ir::Op& op = body.node(id).op;
    if (std::holds_alternative<ir::Reduce>(op) || std::holds_alternative<ir::Gather>(op) ||
        std::holds_alternative<ir::Concat>(op)) {
      return false;
    }
    nodes += weight(op) > 0;
  }
  return nodes <= kCheapNodes;
}

}  // namespace kiln::fuse
