#include "builder/import/onnx/wide_values.h"

#include "builder/import/onnx/importer.h"

namespace kiln::onnx_import {
namespace {

std::optional<ValueId> remembered(NodeContext& c, ValueId x) {
  const auto& wide = c.importer().wide_values();
  const auto it = wide.find({&c.graph(), x});
  return it == wide.end() ? std::nullopt : std::optional(it->second);
}

// The producer of x if it is x = y * y or y ^ e.
const ir::Node* power(const ir::Graph& graph, ValueId x) {
  const ir::NodeId producer = graph.value(x).producer;
  if (producer == ir::kNoNode) return nullptr;
  const ir::Node& node = graph.node(producer);
  const auto* pointwise = std::get_if<ir::Pointwise>(&node.op);
  if (!pointwise) return nullptr;
  const bool square = pointwise->fn == ScalarFn::kMul && node.inputs[0] == node.inputs[1];
  return square || pointwise->fn == ScalarFn::kPow ? &node : nullptr;
}

}  // namespace

ValueId widen(NodeContext& c, ValueId x) {
  if (c.failed() || compute_dtype(c.dtype(x)) == c.dtype(x)) return x;
  if (const auto wide = remembered(c, x)) return *wide;
  if (const ir::Node* node = power(c.graph(), x)) {
    const ScalarFn fn = std::get<ir::Pointwise>(node->op).fn;
    const ValueId base = node->inputs[0], exponent = node->inputs[1];
    const ValueId y = c.cast(base, DType::kF32);
    return c.apply(fn, {y, fn == ScalarFn::kMul ? y : exponent});
  }
  return c.cast(x, DType::kF32);
}

ValueId narrow(NodeContext& c, ValueId wide, DType to) {
  const ValueId rounded = c.cast(wide, to);
  if (!c.failed() && rounded != wide && compute_dtype(to) == c.dtype(wide)) {
    c.importer().wide_values()[{&c.graph(), rounded}] = wide;
  }
  return rounded;
}

ValueId apply_keeping_width(NodeContext& c, ScalarFn fn, std::vector<ValueId> arguments) {
  bool any_wide = false;
  for (ValueId argument : arguments) any_wide |= remembered(c, argument).has_value();
  if (!any_wide) return c.apply(fn, std::move(arguments));
  const DType from = c.dtype(arguments[0]);
  for (ValueId& argument : arguments) argument = widen(c, argument);
  const ValueId result = c.apply(fn, std::move(arguments));
  return yields_bool(fn) ? result : narrow(c, result, from);
}

}  // namespace kiln::onnx_import
