#include "builder/codegen/body_lowering.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace kiln::codegen {

using loop::Bound;
using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using Kind = loop::Expr::Kind;

BodyLowering::BodyLowering(const ir::Graph& body, const IterationSpace& space, bool allow_cuts)
    : body_(body),
      space_(space),
      allow_cuts_(allow_cuts),
      write_(space.dims()),
      lowered_(body.value_count()) {}

Result<ExprId> BodyLowering::lower(ir::ValueId value, const Place& place) {
  std::vector<Lowered>& known = lowered_[ir::index_of(value)];
  for (const Lowered& entry : known) {
    if (entry.place == place && entry.bounds == bounds_) return entry.expr;
  }
  auto made = lower_new(value, place);
  if (!made.ok()) return made;
  lowered_[ir::index_of(value)].push_back({place, bounds_, *made});
  return made;
}

Result<ExprId> BodyLowering::lower_new(ir::ValueId id, const Place& place) {
  const ir::Value& value = body_.value(id);
  if (value.constant) return lower_constant(value);
  // No point reads an element of an empty tensor.
  if (value.type.elements() == 0) return write_.constant(value.type.dtype, 0);
  if (value.producer == ir::kNoNode) return lower_input(id, place);
  const ir::Node& node = body_.node(value.producer);
  return std::visit([&](const auto& op) { return lower_op(op, node, value.type, place); }, node.op);
}

Result<ExprId> BodyLowering::lower_constant(const ir::Value& value) {
  if (value.type.elements() != 1) {
    return refuse("constant '" + value.name + "' of " + std::to_string(value.type.elements()) +
                  " elements inside the body; pass it as an input");
  }
  uint64_t bits = 0;
  std::memcpy(&bits, value.constant->data(), std::min<size_t>(8, value.constant->size()));
  if (bits_of(value.type.dtype) == 4) bits &= 0xF;
  return write_.constant(value.type.dtype, bits);
}

Result<ExprId> BodyLowering::lower_input(ir::ValueId id, const Place& place) {
  const auto inputs = body_.inputs();
  const auto at = std::ranges::find(inputs, id);
  if (at == inputs.end()) return refuse("'" + body_.value(id).name + "' has no producer");
  Expr expr;
  expr.kind = Kind::kLoad;
  expr.dtype = body_.type(id).dtype;
  expr.buffer = static_cast<uint32_t>(at - inputs.begin());
  expr.map = flat_of(place, body_.type(id).shape);
  // Where a bound that concerns other dims fails, the value is not used, but it is safe to read.
  std::ranges::copy_if(bounds_, std::back_inserter(expr.bounds), [&](const Bound& bound) {
    return (loop::dims_of(bound.map) & loop::dims_of(expr.map)) != 0;
  });
  return write_.emit(std::move(expr));
}

Result<ExprId> BodyLowering::lower_scalar(ir::ValueId value) {
  return lower(value, at_axes(std::vector<IndexMap>(body_.type(value).shape.size())));
}

Result<ExprId> BodyLowering::lower_op(const ir::Pointwise& op, const ir::Node& node,
                                      const TensorType& type, const Place& place) {
  std::vector<ExprId> args;
  for (const ir::ValueId input : node.inputs) {
    KILN_ASSIGN_OR_RETURN(const Place from,
                          broadcast_place(place, type.shape, body_.type(input).shape));
    KILN_ASSIGN_OR_RETURN(const ExprId arg, lower(input, from));
    args.push_back(arg);
  }
  return write_.apply(op.fn, type.dtype, std::move(args));
}

Result<ExprId> BodyLowering::lower_op(const ir::Cast& op, const ir::Node& node, const TensorType&,
                                      const Place& place) {
  KILN_ASSIGN_OR_RETURN(const ExprId arg, lower(node.inputs[0], place));
  Expr expr;
  expr.kind = Kind::kCast;
  expr.dtype = op.to;
  expr.saturate = op.saturate;
  expr.args = {arg};
  return write_.emit(std::move(expr));
}

Result<ExprId> BodyLowering::lower_op(const ir::Transpose& op, const ir::Node& node,
                                      const TensorType& type, const Place& place) {
  KILN_ASSIGN_OR_RETURN(const auto axes, axes_of(place, type.shape));
  std::vector<IndexMap> from(axes.size());
  for (size_t a = 0; a < axes.size(); ++a) from[static_cast<size_t>(op.perm[a])] = axes[a];
  return lower(node.inputs[0], at_axes(std::move(from)));
}

Result<ExprId> BodyLowering::lower_op(const ir::Reshape&, const ir::Node& node,
                                      const TensorType& type, const Place& place) {
  return lower(node.inputs[0], at_flat(flat_of(place, type.shape)));
}

Result<ExprId> BodyLowering::lower_op(const ir::Broadcast&, const ir::Node& node,
                                      const TensorType& type, const Place& place) {
  KILN_ASSIGN_OR_RETURN(const Place from,
                        broadcast_place(place, type.shape, body_.type(node.inputs[0]).shape));
  return lower(node.inputs[0], from);
}

}  // namespace kiln::codegen
