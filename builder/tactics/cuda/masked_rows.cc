#include "builder/tactics/cuda/masked_rows.h"

#include <limits>
#include <numeric>

#include "builder/codegen/lower_loop.h"
#include "builder/tactics/spell_out/formula.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::ValueId;

// 0, 1, ... along an axis of scores.
HostTensor numbers_along(size_t axis, int64_t extent) {
  std::vector<int64_t> numbers(static_cast<size_t>(extent));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  const auto bytes = std::as_bytes(std::span(numbers));
  HostTensor tensor{{DType::kI64, Shape(4, 1)}, SharedBytes::take({bytes.begin(), bytes.end()})};
  tensor.type.shape[axis] = extent;
  return tensor;
}

// Which rows see something: [B, H, S, 1], each of the first three or 1. `positions`: the numbers
// of rows and of columns where that decides what a row sees, else none.
ValueId seeing_rows(Formula& f, const AttentionOperands& operands, ValueId mask,
                    const std::vector<ValueId>& positions) {
  const ValueId lowest = f.number(DType::kF32, -std::numeric_limits<float>::infinity());
  ValueId seen = f.reshape(f.cast(mask, DType::kF32), operands.mask->dims);
  if (!positions.empty()) {
    const ValueId allowed = f.apply(ScalarFn::kGreaterEqual, positions);
    seen = f.apply(ScalarFn::kWhere, {allowed, seen, lowest});
  }
  const ValueId most = f.reduce(ReduceFn::kMax, 3, seen);
  // Rows with a NaN keep it.
  const ValueId empty = f.apply(ScalarFn::kEqual, {most, lowest});
  return f.apply(ScalarFn::kWhere, {empty, f.number(DType::kF32, 0), f.number(DType::kF32, 1)});
}

Result<> find_rows(const Graph& body, const AttentionOperands& operands, MaskedRows& made) {
  const ir::Node& node = body.node(operands.anchor);
  std::vector<ir::NodeId> views;
  KILN_RETURN_IF_ERROR(view_of_input(body, node.inputs[3], views));
  const ir::Extracted mask = ir::extract(body, views, std::span(&node.inputs[3], 1));
  made.inputs = mask.inputs;
  Graph graph;
  std::vector<ValueId> arguments, positions;
  for (ValueId input : mask.inputs) arguments.push_back(graph.add_input("", body.type(input)));
  if (operands.op->causal) {
    made.constants = {numbers_along(2, operands.q.dims[2]), numbers_along(3, operands.k.dims[2])};
  }
  for (const HostTensor& one : made.constants) {
    positions.push_back(graph.add_input("", one.type));
  }
  Formula f(graph, node);
  const ValueId seeing =
      seeing_rows(f, operands, ir::inline_graph(graph, mask.graph, arguments)[0], positions);
  const ValueId kept = f.cast(seeing, body.type(node.outputs[0]).dtype);
  if (f.error()) return *f.error();
  graph.mark_output(kept);
  made.kept = graph.type(kept);
  KILN_ASSIGN_OR_RETURN(made.find, lower_to_loop(graph));
  return Ok();
}

Result<> zero_rows(const Graph& body, const AttentionOperands& operands, MaskedRows& made) {
  const ir::Node& node = body.node(operands.anchor);
  const TensorType& result = body.type(node.outputs[0]);
  std::vector<ir::NodeId> views;
  KILN_RETURN_IF_ERROR(view_in_output(body, node.outputs[0], views));
  const ir::Extracted behind = ir::extract(body, views, body.outputs());
  Graph graph;
  const ValueId stored = graph.add_input("", body.type(body.outputs()[0]));
  const ValueId kept = graph.add_input("", made.kept);
  Formula f(graph, node);
  // In the result's type, so that what joins the heads behind it joins these as well.
  const ValueId wide = f.emit(ir::Broadcast{result.shape}, {kept});
  const ValueId joined = ir::inline_graph(graph, behind.graph, std::span(&wide, 1))[0];
  const ValueId chosen = f.apply(
      ScalarFn::kWhere,
      {f.cast(joined, DType::kBool), f.cast(stored, DType::kF32), f.number(DType::kF32, 0)});
  const ValueId zeroed = f.cast(chosen, result.dtype);
  if (f.error()) return *f.error();
  graph.mark_output(zeroed);
  KILN_ASSIGN_OR_RETURN(made.zero, lower_to_loop(graph));
  return Ok();
}

}  // namespace

Result<MaskedRows> masked_rows(const Graph& body, const AttentionOperands& operands) {
  MaskedRows made;
  KILN_RETURN_IF_ERROR(find_rows(body, operands, made));
  KILN_RETURN_IF_ERROR(zero_rows(body, operands, made));
  return made;
}

}  // namespace kiln
