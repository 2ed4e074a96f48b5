// Operations that depend on the order of elements along one axis. They compare every element with
// every other: right for the short axes that models put them on.
#include "builder/tactics/spell_out/operation_formulas.h"

namespace kiln {
namespace {

using ir::ValueId;

constexpr int64_t kMostExtent = 8192;

size_t axis_of(Formula& f, const Operation& op, ValueId x) {
  const auto axis = static_cast<size_t>(op.get_int("axis", 0));
  const Shape& shape = f.type(x).shape;
  if (axis >= shape.size()) {
    f.refuse("an order along no axis");
    return 0;
  }
  if (shape[axis] < 1 || shape[axis] > kMostExtent) {
    f.refuse("an order of " + std::to_string(shape[axis]) + " elements");
  }
  return axis;
}

ValueId is_nan(Formula& f, ValueId x) { return f.apply(ScalarFn::kIsNan, {x}); }

// x with a new axis of extent 1 after `axis`, or in its place.
ValueId apart(Formula& f, ValueId x, size_t axis, bool after) {
  Shape shape = f.type(x).shape;
  shape.insert(shape.begin() + static_cast<int64_t>(axis) + (after ? 1 : 0), 1);
  return f.reshape(x, shape);
}

}  // namespace

Values write_arg_most(Formula& f, const Operation& op, const Values& in, const TensorType& out) {
  const ValueId x = in[0];
  const size_t axis = axis_of(f, op, x);
  if (f.error()) return {};
  const Shape shape = f.type(x).shape;
  const bool last = op.get_int("select_last_index", 0) != 0;
  const ReduceFn fn = op.name == "arg_max" ? ReduceFn::kMax : ReduceFn::kMin;
  const ValueId most = f.reduce(fn, static_cast<int64_t>(axis), x);
  ValueId hit = f.apply(ScalarFn::kEqual, {x, most});
  if (is_float(f.type(x).dtype)) hit = f.apply(ScalarFn::kOr, {hit, is_nan(f, x)});
  const ValueId index = f.iota(shape.size(), axis, shape[axis]);
  const ValueId none = f.number(DType::kI64, last ? -1.0 : static_cast<double>(shape[axis]));
  const ValueId found = f.apply(ScalarFn::kWhere, {hit, index, none});
  const ReduceFn end = last ? ReduceFn::kMax : ReduceFn::kMin;
  return {f.reshape(f.reduce(end, static_cast<int64_t>(axis), found), out.shape)};
}

Values write_cumulation(Formula& f, const Operation& op, const Values& in, const TensorType& out) {
  const size_t axis = axis_of(f, op, in[0]);
  if (f.error()) return {};
  const Shape shape = out.shape;
  const bool exclusive = op.get_int("exclusive", 0) != 0, reverse = op.get_int("reverse", 0) != 0;
  const bool product = op.name == "cum_prod";
  const DType wide = is_float(out.dtype) && bits_of(out.dtype) < 32 ? DType::kF32 : out.dtype;
  // Axis `axis` is the result's element, the next one what it adds up.
  const ValueId x = apart(f, f.cast(in[0], wide), axis, false);
  const ValueId to = f.iota(shape.size() + 1, axis, shape[axis]);
  const ValueId from = f.iota(shape.size() + 1, axis + 1, shape[axis]);
  const ScalarFn before = exclusive ? ScalarFn::kLess : ScalarFn::kLessEqual;
  const ValueId counts = f.apply(before, reverse ? Values{to, from} : Values{from, to});
  const ValueId terms = f.apply(ScalarFn::kWhere, {counts, x, f.number(wide, product ? 1 : 0)});
  const ReduceFn fn = product ? ReduceFn::kProd : ReduceFn::kSum;
  const ValueId total = f.reduce(fn, static_cast<int64_t>(axis) + 1, terms);
  return {f.cast(f.reshape(total, shape), out.dtype)};
}

// An element's place is the number of elements that come before it.
Values write_top_k(Formula& f, const Operation& op, const Values& in, const TensorType& out) {
  const ValueId x = in[0];
  const size_t axis = axis_of(f, op, x);
  if (f.error()) return {};
  const TensorType type = f.type(x);
  const size_t rank = type.shape.size();
  const int64_t extent = type.shape[axis], k = out.shape[axis];
  const auto inner = static_cast<int64_t>(axis) + 1;
  const bool largest = op.get_int("largest", 1) != 0;
  const ValueId own = apart(f, x, axis, true), other = apart(f, x, axis, false);
  ValueId better = f.apply(largest ? ScalarFn::kGreater : ScalarFn::kLess, {other, own});
  ValueId equal = f.apply(ScalarFn::kEqual, {other, own});
  if (is_float(type.dtype)) {
    const ValueId own_nan = is_nan(f, own), other_nan = is_nan(f, other);
    const Values order = largest ? Values{other_nan, own_nan} : Values{own_nan, other_nan};
    const ValueId only = f.apply(ScalarFn::kAnd, {order[0], f.apply(ScalarFn::kNot, {order[1]})});
    better = f.apply(ScalarFn::kOr, {better, only});
    equal = f.apply(ScalarFn::kOr, {equal, f.apply(ScalarFn::kAnd, {own_nan, other_nan})});
  }
  const ValueId earlier = f.apply(
      ScalarFn::kLess, {f.iota(rank + 1, axis + 1, extent), f.iota(rank + 1, axis, extent)});
  const ValueId before =
      f.apply(ScalarFn::kOr, {better, f.apply(ScalarFn::kAnd, {equal, earlier})});
  const ValueId place = f.reduce(ReduceFn::kSum, inner, f.cast(before, DType::kI64));
  // [..., k, extent]: the element whose place is k.
  Shape flat = type.shape;
  flat.insert(flat.begin() + static_cast<int64_t>(axis), 1);
  const ValueId chosen =
      f.apply(ScalarFn::kEqual, {f.reshape(place, flat), f.iota(rank + 1, axis, k)});
  const ValueId none = f.lowest(type.dtype);
  const ValueId value = f.apply(ScalarFn::kWhere, {chosen, other, none});
  const ValueId index = f.apply(
      ScalarFn::kWhere, {chosen, f.iota(rank + 1, axis + 1, extent), f.number(DType::kI64, -1)});
  return {f.reshape(f.reduce(ReduceFn::kMax, inner, value), out.shape),
          f.reshape(f.reduce(ReduceFn::kMax, inner, index), out.shape)};
}

}  // namespace kiln
