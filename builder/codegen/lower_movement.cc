// BodyLowering: operations that move elements, as index maps, bounds and selections.
#include <algorithm>

#include "builder/codegen/body_lowering.h"

namespace kiln::codegen {

using loop::Bound;
using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using Kind = loop::Expr::Kind;

namespace {

std::vector<Bound> joined(std::vector<Bound> bounds, const std::vector<Bound>& more) {
  for (const Bound& bound : more) {
    if (std::ranges::find(bounds, bound) == bounds.end()) bounds.push_back(bound);
  }
  return bounds;
}

// Whether index `map` reaches below or above [0, extent) at some point.
struct Overhang {
  bool below = true, above = true;
};
Result<Overhang> overhang(const IndexMap& map, int64_t extent, const loop::LoopKernel& kernel) {
  if (!map.gathers.empty()) return refuse("a gathered index is compared with a bound");
  const auto range = loop::range_of(map, kernel);
  if (!range) return refuse("an index passes 2^61");
  return Overhang{range->low < 0, range->high >= extent};
}

}  // namespace

Result<ExprId> BodyLowering::lower_op(const ir::Slice& op, const ir::Node& node,
                                      const TensorType& type, const Place& place) {
  KILN_ASSIGN_OR_RETURN(auto axes, axes_of(place, type.shape));
  for (size_t a = 0; a < axes.size(); ++a) {
    const int64_t step = op.sizes[a] > 1 ? op.steps[a] : 1;
    axes[a] = shifted(scaled(axes[a], step), op.starts[a]);
  }
  return lower(node.inputs[0], at_axes(std::move(axes)));
}

Result<ExprId> BodyLowering::lower_within(ir::ValueId value, const Place& place,
                                          const std::vector<Bound>& more) {
  const std::vector<Bound> outer = bounds_;
  bounds_ = joined(bounds_, more);
  auto result = lower(value, place);
  bounds_ = outer;
  return result;
}

Result<ExprId> BodyLowering::lower_op(const ir::Pad& op, const ir::Node& node,
                                      const TensorType& type, const Place& place) {
  const TensorType& from = body_.type(node.inputs[0]);
  if (from.elements() == 0) return lower_scalar(node.inputs[1]);
  KILN_ASSIGN_OR_RETURN(auto axes, axes_of(place, type.shape));
  std::vector<Bound> inside;
  std::optional<ExprId> condition;
  const auto require = [&](ScalarFn fn, const IndexMap& map, int64_t limit) -> Result<> {
    KILN_ASSIGN_OR_RETURN(ExprId test, write_.compare(fn, map, limit));
    if (condition) {
      KILN_ASSIGN_OR_RETURN(test, write_.apply(ScalarFn::kAnd, DType::kBool, {*condition, test}));
    }
    condition = test;
    return Ok();
  };
  for (size_t a = 0; a < axes.size(); ++a) {
    if (op.before[a] == 0 && op.after[a] == 0) continue;
    axes[a] = shifted(axes[a], -op.before[a]);
    KILN_ASSIGN_OR_RETURN(const Overhang out, overhang(axes[a], from.shape[a], write_.kernel));
    if (out.below) KILN_RETURN_IF_ERROR(require(ScalarFn::kGreaterEqual, axes[a], 0));
    if (out.above) KILN_RETURN_IF_ERROR(require(ScalarFn::kLess, axes[a], from.shape[a]));
    if (out.below || out.above) inside.push_back({axes[a], 0, from.shape[a]});
  }
  KILN_ASSIGN_OR_RETURN(const ExprId inner,
                        lower_within(node.inputs[0], at_axes(std::move(axes)), inside));
  if (!condition) return inner;
  KILN_ASSIGN_OR_RETURN(const ExprId fill, lower_scalar(node.inputs[1]));
  return select_or_fill(*condition, inner, fill, inside);
}

Result<ExprId> BodyLowering::select_or_fill(ExprId condition, ExprId inner, ExprId fill,
                                            const std::vector<Bound>& inside) {
  const DType dtype = write_.kernel.exprs[inner].dtype;
  Expr load = write_.kernel.exprs[inner];
  const Expr& value = write_.kernel.exprs[fill];
  if (load.kind == Kind::kLoad && load.bounds == joined(bounds_, inside) &&
      value.kind == Kind::kConstant) {
    load.constant = value.constant;
    return write_.emit(std::move(load));
  }
  return write_.apply(ScalarFn::kWhere, dtype, {condition, inner, fill});
}

// Of two values that are cast alike it is what is cast: of several pieces one is converted then.
Result<ExprId> BodyLowering::select(ExprId condition, ExprId a, ExprId b) {
  const Expr x = write_.kernel.exprs[a], y = write_.kernel.exprs[b];
  const auto source = [&](const Expr& cast) { return write_.kernel.exprs[cast.args[0]].dtype; };
  const bool casts = x.kind == Kind::kCast && y.kind == Kind::kCast && x.dtype == y.dtype &&
                     x.saturate == y.saturate && source(x) == source(y);
  if (!casts) return write_.apply(ScalarFn::kWhere, x.dtype, {condition, a, b});
  Expr cast = x;
  KILN_ASSIGN_OR_RETURN(
      cast.args[0], write_.apply(ScalarFn::kWhere, source(x), {condition, x.args[0], y.args[0]}));
  return write_.emit(std::move(cast));
}

Result<ExprId> BodyLowering::lower_op(const ir::Concat& op, const ir::Node& node,
                                      const TensorType& type, const Place& place) {
  const auto axis = static_cast<size_t>(op.axis);
  KILN_ASSIGN_OR_RETURN(const auto axes, axes_of(place, type.shape));
  int64_t end = type.shape[axis];
  std::optional<ExprId> result;
  // From the last piece to the first: where(index < end of piece, piece, the ones after it).
  for (size_t i = node.inputs.size(); i-- > 0;) {
    const int64_t extent = body_.type(node.inputs[i]).shape[axis];
    const int64_t start = end - extent;
    const int64_t piece_end = end;
    end = start;
    std::vector<IndexMap> from = axes;
    from[axis] = shifted(axes[axis], -start);
    KILN_ASSIGN_OR_RETURN(const Overhang out, overhang(from[axis], extent, write_.kernel));
    const auto range = loop::range_of(from[axis], write_.kernel);
    if (extent == 0 || range->high < 0 || range->low >= extent) continue;
    std::vector<Bound> inside;
    if (out.below || out.above) inside.push_back({from[axis], 0, extent});
    KILN_ASSIGN_OR_RETURN(const ExprId piece,
                          lower_within(node.inputs[i], at_axes(std::move(from)), inside));
    if (!result) {
      result = piece;
      continue;
    }
    KILN_ASSIGN_OR_RETURN(const ExprId test,
                          write_.compare(ScalarFn::kLess, axes[axis], piece_end));
    KILN_ASSIGN_OR_RETURN(result, select(test, piece, *result));
  }
  if (!result) return write_.constant(type.dtype, 0);  // the place lies outside: never read
  return *result;
}

Result<ExprId> BodyLowering::lower_op(const ir::Gather& op, const ir::Node& node,
                                      const TensorType& type, const Place& place) {
  const Shape& data = body_.type(node.inputs[0]).shape;
  if (element_count(data) == 0) return refuse("'" + node.name + "' gathers from an empty tensor");
  const Shape& indices = body_.type(node.inputs[1]).shape;
  KILN_ASSIGN_OR_RETURN(const auto axes, axes_of(place, type.shape));
  const auto middle = axes.begin() + op.axis;
  const auto after = middle + static_cast<int64_t>(indices.size());
  KILN_ASSIGN_OR_RETURN(const ExprId index, lower(node.inputs[1], at_axes({middle, after})));
  std::vector<IndexMap> from(axes.begin(), middle);
  KILN_ASSIGN_OR_RETURN(IndexMap gathered, gather_index(index, data[static_cast<size_t>(op.axis)]));
  from.push_back(std::move(gathered));
  from.insert(from.end(), after, axes.end());
  return lower(node.inputs[0], at_axes(std::move(from)));
}

Result<IndexMap> BodyLowering::gather_index(ExprId index, int64_t extent) {
  const DType dtype = write_.kernel.exprs[index].dtype;
  if (write_.kernel.exprs[index].kind == Kind::kConstant) {
    const uint64_t bits = write_.kernel.exprs[index].constant;
    const int64_t value =
        dtype == DType::kI32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
    if (value < -extent || value >= extent) {
      return Error{ErrorCode::kInvalidArgument,
                   "gather of element " + std::to_string(value) + " of " + std::to_string(extent)};
    }
    return constant_index(value < 0 ? value + extent : value);
  }
  KILN_ASSIGN_OR_RETURN(const ExprId zero, write_.constant(dtype, 0));
  KILN_ASSIGN_OR_RETURN(const ExprId count, write_.constant(dtype, static_cast<uint64_t>(extent)));
  KILN_ASSIGN_OR_RETURN(const ExprId negative,
                        write_.apply(ScalarFn::kLess, DType::kBool, {index, zero}));
  KILN_ASSIGN_OR_RETURN(const ExprId wrapped, write_.apply(ScalarFn::kAdd, dtype, {index, count}));
  KILN_ASSIGN_OR_RETURN(const ExprId positive,
                        write_.apply(ScalarFn::kWhere, dtype, {negative, wrapped, index}));
  return IndexMap{0, {}, {{positive, extent, 1}}};
}

}  // namespace kiln::codegen
