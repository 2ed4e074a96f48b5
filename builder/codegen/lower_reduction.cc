// BodyLowering: reductions, and which dims of the space they run over.
#include <algorithm>
#include <iterator>

#include "builder/codegen/body_lowering.h"

namespace kiln::codegen {

using loop::Bound;
using loop::DimSet;
using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using Kind = loop::Expr::Kind;

Result<ExprId> BodyLowering::lower_op(const ir::Reduce& op, const ir::Node& node,
                                      const TensorType& type, const Place& place) {
  const TensorType& from = body_.type(node.inputs[0]);
  KILN_ASSIGN_OR_RETURN(const auto axes, axes_of(place, type.shape));
  Shape reduced_shape;
  DimSet needed = 0;
  std::vector<IndexMap> index(from.shape.size());
  size_t out = 0;
  for (size_t a = 0; a < from.shape.size(); ++a) {
    if (std::ranges::binary_search(op.axes, static_cast<int64_t>(a))) {
      reduced_shape.push_back(from.shape[a]);
      if (op.keep_dims) ++out;
      continue;
    }
    index[a] = axes[out++];
    needed |= write_.varying(index[a]);
  }
  if (element_count(reduced_shape) == 1) {
    return lower(node.inputs[0], at_axes(std::move(index)));
  }
  KILN_RETURN_IF_ERROR(check_repeats(needed, type.elements()));
  KILN_RETURN_IF_ERROR(check_reduced_dims(needed, reduced_shape));
  KILN_ASSIGN_OR_RETURN(const auto inner, reduced_index(reduced_shape));
  for (size_t i = 0; i < op.axes.size(); ++i) index[static_cast<size_t>(op.axes[i])] = inner[i];
  return emit_reduce(op, node.inputs[0], at_axes(std::move(index)), type.dtype);
}

Result<ExprId> BodyLowering::emit_reduce(const ir::Reduce& op, ir::ValueId input,
                                         const Place& place, DType dtype) {
  // Bounds on the reduced dims say which results are asked for, not what is summed.
  std::vector<Bound> outer = bounds_;
  std::erase_if(bounds_, [&](const Bound& b) { return loop::dims_of(b.map) & write_.reduced(); });
  auto arg = lower(input, place);
  std::swap(bounds_, outer);
  if (!arg.ok()) return arg;
  Expr expr;
  expr.kind = Kind::kReduce;
  expr.dtype = dtype;
  expr.reduce_fn = op.fn;
  if (dtype == DType::kBool && op.fn == ReduceFn::kMax) expr.reduce_fn = ReduceFn::kAny;
  if (dtype == DType::kBool && op.fn == ReduceFn::kMin) expr.reduce_fn = ReduceFn::kAll;
  expr.args = {*arg};
  return write_.emit(std::move(expr));
}

bool BodyLowering::has_reduced_dims() const {
  return std::ranges::any_of(write_.kernel.dims, [](const loop::Dim& dim) { return dim.reduced; });
}

Result<> BodyLowering::check_repeats(DimSet needed, int64_t results) {
  int64_t asked = 1;
  for (uint32_t d = 0; d < write_.kernel.dims.size(); ++d) {
    if (needed >> d & 1) asked *= write_.kernel.dims[d].extent;
  }
  if (asked <= results) return Ok();
  return refuse("a reduction with " + std::to_string(results) + " results is needed at " +
                std::to_string(asked) + " points");
}

Result<> BodyLowering::check_reduced_dims(DimSet needed, const Shape& shape) {
  const int64_t count = element_count(shape);
  if (needed & write_.reduced()) {
    return refuse("a reduction is needed at every point of another's reduced axes");
  }
  if (has_reduced_dims()) {
    if (points(true, false) == count) return Ok();
    return refuse("reductions over " + std::to_string(points(true, false)) + " and " +
                  std::to_string(count) + " elements");
  }
  int64_t free = 1;
  std::vector<uint32_t> dims;
  for (uint32_t d = 0; d < write_.kernel.dims.size(); ++d) {
    if ((needed >> d & 1) || write_.kernel.dims[d].extent == 1) continue;
    free *= write_.kernel.dims[d].extent;
    dims.push_back(d);
  }
  if (dims.empty())
    missing_reduced = shape;
  else if (free == count)
    found_reduced = dims;
  return refuse("a reduction over " + std::to_string(count) +
                " elements meets outputs that repeat its result " + std::to_string(free) +
                " times");
}

Result<std::vector<IndexMap>> BodyLowering::reduced_index(const Shape& shape) {
  std::vector<IndexMap> dims;
  Shape extents, wanted;
  for (uint32_t d = 0; d < write_.kernel.dims.size(); ++d) {
    if (!write_.kernel.dims[d].reduced || write_.kernel.dims[d].extent == 1) continue;
    dims.push_back({0, {{d, 1, 0, 1}}, {}});
    extents.push_back(write_.kernel.dims[d].extent);
  }
  std::ranges::copy_if(shape, std::back_inserter(wanted), [](int64_t e) { return e != 1; });
  if (extents != wanted) return unflatten(space_.flat(true), shape);
  std::vector<IndexMap> index(shape.size());
  for (size_t a = 0, next = 0; a < shape.size(); ++a) {
    if (shape[a] != 1) index[a] = dims[next++];
  }
  return index;
}

}  // namespace kiln::codegen
