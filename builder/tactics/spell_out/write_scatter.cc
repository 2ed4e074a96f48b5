// Scatters turned round: every element of the result looks for the updates that are meant for it.
// Deterministic, and right for the few updates that models scatter.
#include <functional>
#include <numeric>

#include "builder/tactics/spell_out/operation_formulas.h"

namespace kiln {
namespace {

using ir::ValueId;

constexpr int64_t kMostComparisons = int64_t{1} << 34;

// Axes of `updates` and `meant`: the data's, then one of the updates in the order they apply.
struct Scatter {
  ValueId data{};
  ValueId updates{};  // broadcasts along the data's axes
  ValueId meant{};    // bool: the update is for this element; of the whole shape
};

// The last update wins. A maximum picks it out of the others: no bit of it changes.
ValueId replaced(Formula& f, const Scatter& s) {
  const Shape shape = f.type(s.meant).shape;
  const auto axis = static_cast<int64_t>(shape.size()) - 1;
  const DType dtype = f.type(s.data).dtype;
  const ValueId number = f.iota(shape.size(), shape.size() - 1, shape.back());
  const ValueId none = f.number(DType::kI64, -1);
  const ValueId winner =
      f.reduce(ReduceFn::kMax, axis, f.apply(ScalarFn::kWhere, {s.meant, number, none}));
  const ValueId chosen = f.apply(ScalarFn::kEqual, {number, winner});
  const ValueId value = f.reduce(ReduceFn::kMax, axis,
                                 f.apply(ScalarFn::kWhere, {chosen, s.updates, f.lowest(dtype)}));
  const ValueId any = f.apply(ScalarFn::kGreater, {winner, none});
  const Shape& whole = f.type(s.data).shape;
  return f.apply(ScalarFn::kWhere, {f.reshape(any, whole), f.reshape(value, whole), s.data});
}

ValueId combined(Formula& f, const Scatter& s, ScalarFn fn, ReduceFn reduce, ValueId neutral) {
  const auto axis = static_cast<int64_t>(f.type(s.meant).shape.size()) - 1;
  const ValueId terms = f.apply(ScalarFn::kWhere, {s.meant, s.updates, neutral});
  const ValueId all = f.reshape(f.reduce(reduce, axis, terms), f.type(s.data).shape);
  return f.apply(fn, {s.data, all});
}

ValueId scattered(Formula& f, Scatter s, const std::string& how) {
  const DType dtype = f.type(s.data).dtype;
  if (how == "none") return replaced(f, s);
  if (dtype == DType::kBool) f.refuse("a scatter that combines bools");
  const DType wide = is_float(dtype) && bits_of(dtype) < 32 ? DType::kF32 : dtype;
  s.data = f.cast(s.data, wide);
  s.updates = f.cast(s.updates, wide);
  if (how == "add") return combined(f, s, ScalarFn::kAdd, ReduceFn::kSum, f.number(wide, 0));
  if (how == "mul") return combined(f, s, ScalarFn::kMul, ReduceFn::kProd, f.number(wide, 1));
  if (how == "max") return combined(f, s, ScalarFn::kMax, ReduceFn::kMax, f.lowest(wide));
  return combined(f, s, ScalarFn::kMin, ReduceFn::kMin, f.highest(wide));
}

bool too_many(Formula& f, int64_t elements, int64_t updates) {
  if (elements <= kMostComparisons / std::max<int64_t>(updates, 1)) return false;
  f.refuse("a scatter of " + std::to_string(updates) + " updates, each compared with " +
           std::to_string(elements) + " elements");
  return true;
}

}  // namespace

Values write_scatter_elements(Formula& f, const Operation& op, const Values& in,
                              const TensorType& out) {
  const auto axis = static_cast<size_t>(op.get_int("axis", 0));
  const Shape data = out.shape, given = f.type(in[1]).shape;
  if (out.elements() == 0 || element_count(given) == 0) {
    f.refuse("a scatter of nothing");
    return {};
  }
  const size_t rank = data.size();
  const int64_t count = given[axis];
  if (too_many(f, out.elements(), count)) return {};
  // The updates' axis goes last, a new one of extent 1 takes its place, the others grow to the
  // data's extents.
  ir::Transpose last;
  ir::Pad pad{Shape(rank, 0), Shape(rank, 0)};
  Shape lined;
  for (size_t a = 0; a < rank; ++a) {
    if (a == axis) continue;
    pad.after[last.perm.size()] = data[a] - given[a];
    last.perm.push_back(static_cast<int64_t>(a));
  }
  last.perm.push_back(static_cast<int64_t>(axis));
  for (size_t a = 0; a < rank; ++a) lined.push_back(a == axis ? 1 : data[a]);
  lined.push_back(count);
  const bool grows = pad.after != Shape(rank, 0);
  const auto line_up = [&](ValueId x, ValueId fill) {
    ValueId moved = f.emit(last, {x});
    if (grows) moved = f.emit(pad, {moved, fill});
    return f.reshape(moved, lined);
  };
  const ValueId index = f.wrapped(f.cast(in[1], DType::kI64), data[axis]);
  const ValueId place = line_up(index, f.number(DType::kI64, -1));
  const ValueId meant = f.apply(ScalarFn::kEqual, {place, f.iota(rank + 1, axis, data[axis])});
  const ValueId updates = line_up(in[2], f.number(out.dtype, 0));
  return {
      f.cast(scattered(f, {in[0], updates, meant}, op.get_string("reduction", "none")), out.dtype)};
}

// The data as [rows, inner]: an index names a row.
Values write_scatter_nd(Formula& f, const Operation& op, const Values& in, const TensorType& out) {
  const Shape indices = f.type(in[1]).shape;
  const int64_t depth = indices.back();
  const Shape outer(out.shape.begin(), out.shape.begin() + depth);
  const int64_t count = element_count({indices.begin(), indices.end() - 1});
  if (out.elements() == 0 || count == 0) {
    f.refuse("a scatter of nothing");
    return {};
  }
  if (too_many(f, out.elements(), count)) return {};
  const int64_t rows = element_count(outer), inner = out.elements() / rows;
  const ValueId tuples = f.cast(f.reshape(in[1], {count, depth}), DType::kI64);
  ValueId row = f.number(DType::kI64, 0);
  for (int64_t d = 0, stride = rows; d < depth; ++d) {
    const int64_t extent = outer[static_cast<size_t>(d)];
    stride /= extent;
    const ValueId column = f.reshape(f.slice(tuples, 1, d, 1), {1, 1, count});
    row = f.plus(row, f.wrapped(column, extent), stride);
  }
  const ValueId equal = f.apply(ScalarFn::kEqual, {row, f.iota(3, 0, rows)});
  const ValueId meant = f.emit(ir::Broadcast{{rows, inner, count}}, {equal});
  const ValueId updates = f.reshape(
      f.emit(ir::Transpose{{1, 0}}, {f.reshape(in[2], {count, inner})}), {1, inner, count});
  const ValueId data = f.reshape(in[0], {rows, inner});
  const ValueId result = scattered(f, {data, updates, meant}, op.get_string("reduction", "none"));
  return {f.cast(f.reshape(result, out.shape), out.dtype)};
}

}  // namespace kiln
