// Ordering, picking and masking along axes: TopK, ArgMax, OneHot, Trilu, CumSum, ...
#include <algorithm>
#include <numeric>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

// 0, 1, 2, ... along `axis` of a tensor of `rank` axes, 1 elsewhere.
ValueId iota_along(NodeContext& c, int64_t axis, int64_t extent, int64_t rank) {
  std::vector<int64_t> values(at(extent));
  std::iota(values.begin(), values.end(), int64_t{0});
  Shape shape(at(rank), 1);
  shape[at(axis)] = extent;
  return c.reshape(c.ints(values), shape);
}

Outputs top_k(NodeContext& c) {
  const TensorType in = c.input_type(0);
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", -1, in.rank()));
  int64_t k = c.get_int("k", 0);
  if (c.opset() >= 10) {
    KILN_ASSIGN_OR_RETURN(k, c.known_int(1, "k"));
  }
  Operation op{"top_k", {}};
  op.set("axis", axis).set("k", k);
  op.set("largest", c.get_int("largest", 1)).set("sorted", c.get_int("sorted", 1));
  return c.opaque(std::move(op), {c.input(0)});
}

Result<ValueId> arg_extreme(NodeContext& c, const char* name, ValueId x, int64_t axis,
                            bool keep_dims) {
  Operation op{name, {}};
  op.set("axis", axis).set("keepdims", int64_t{keep_dims});
  op.set("select_last_index", c.get_int("select_last_index", 0));
  const auto values = c.opaque(std::move(op), {x});
  if (values.empty()) return *c.error();
  return values[0];
}

template <bool kMax>
Outputs arg(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 0, c.input_type(0).rank()));
  KILN_ASSIGN_OR_RETURN(const ValueId found,
                        arg_extreme(c, kMax ? "arg_max" : "arg_min", c.input(0), axis,
                                    c.get_int("keepdims", 1) != 0));
  return one(found);
}

// 1 at the first maximum of each line, 0 elsewhere. Before opset 13 the axes from `axis` on are
// one line.
Outputs hardmax(NodeContext& c) {
  const TensorType in = c.input_type(0);
  ValueId x = c.input(0);
  KILN_ASSIGN_OR_RETURN(int64_t axis, c.axis("axis", c.opset() < 13 ? 1 : -1, in.rank()));
  if (c.opset() < 13) {
    const int64_t rows = element_count({in.shape.begin(), in.shape.begin() + axis});
    const int64_t columns = element_count({in.shape.begin() + axis, in.shape.end()});
    x = c.reshape(x, {rows, columns});
    axis = 1;
  }
  KILN_ASSIGN_OR_RETURN(const ValueId best, arg_extreme(c, "arg_max", x, axis, true));
  const ValueId hit =
      c.apply(ScalarFn::kEqual, {iota_along(c, axis, c.shape(x)[at(axis)], c.rank(x)), best});
  return one(c.reshape(c.cast(hit, in.dtype), in.shape));
}

// values is [off, on]; an index outside of [-depth, depth) gives a line of off.
Outputs one_hot(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const auto depths, c.known_floats(1, "depth"));
  if (depths.size() != 1 || !(depths[0] >= 0 && depths[0] < 1e9)) {
    return c.fail("depth is " + (depths.empty() ? "empty" : std::to_string(depths[0])) +
                  ", expected one number of 0 or more");
  }
  const auto depth = static_cast<int64_t>(depths[0]);
  const int64_t rank = c.input_type(0).rank() + 1;
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", -1, rank));
  if (c.input_type(2).shape != Shape{2}) {
    return c.fail("values are " + to_string(c.input_type(2)) + ", expected two: off and on");
  }
  ValueId indices = c.unsqueeze(c.cast(c.input(0), DType::kI64), {axis});
  const ValueId zero = c.scalar_int(0, DType::kI64);
  indices = c.where(c.apply(ScalarFn::kLess, {indices, zero}),
                    c.add(indices, c.scalar_int(depth, DType::kI64)), indices);
  const ValueId hit = c.apply(ScalarFn::kEqual, {indices, iota_along(c, axis, depth, rank)});
  const auto value = [&](int64_t i) { return c.reshape(c.slice_axis(c.input(2), 0, i, 1), {}); };
  return one(c.where(hit, value(1), value(0)));
}

// Keeps column - row >= k (upper) or <= k (lower).
Outputs trilu(NodeContext& c) {
  const TensorType in = c.input_type(0);
  const int64_t rank = in.rank();
  if (rank < 2) return c.fail("input is " + to_string(in) + ", expected rank 2 or more");
  int64_t k = 0;
  if (c.has(1)) {
    KILN_ASSIGN_OR_RETURN(k, c.known_int(1, "k"));
  }
  k = std::clamp<int64_t>(k, -(int64_t{1} << 40), int64_t{1} << 40);
  const bool upper = c.get_int("upper", 1) != 0;
  const ValueId row = iota_along(c, 0, in.shape[at(rank - 2)], 2);
  const ValueId column = iota_along(c, 1, in.shape[at(rank - 1)], 2);
  const ValueId border = c.add(row, c.scalar_int(k, DType::kI64));
  const ValueId kept =
      c.apply(upper ? ScalarFn::kGreaterEqual : ScalarFn::kLessEqual, {column, border});
  return one(c.where(kept, c.input(0), c.cast(c.scalar_int(0, DType::kI64), in.dtype)));
}

template <bool kProduct>
Outputs cumulative(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(int64_t axis, c.known_int(1, "axis"));
  KILN_ASSIGN_OR_RETURN(axis, c.normalise_axis(axis, c.input_type(0).rank()));
  Operation op{kProduct ? "cum_prod" : "cum_sum", {}};
  op.set("axis", axis);
  op.set("exclusive", c.get_int("exclusive", 0)).set("reverse", c.get_int("reverse", 0));
  return c.opaque(std::move(op), {c.input(0)});
}

Outputs reverse_sequence(NodeContext& c) {
  Operation op{"reverse_sequence", {}};
  op.set("batch_axis", c.get_int("batch_axis", 1)).set("time_axis", c.get_int("time_axis", 0));
  return c.opaque(std::move(op), {c.input(0), c.input(1)});
}

constexpr Handler kHandlers[] = {
    {"", "ArgMax", arg<true>},
    {"", "ArgMin", arg<false>},
    {"", "CumProd", cumulative<true>},
    {"", "CumSum", cumulative<false>},
    {"", "Hardmax", hardmax},
    {"", "OneHot", one_hot},
    {"", "ReverseSequence", reverse_sequence},
    {"", "TopK", top_k},
    {"", "Trilu", trilu},
};

}  // namespace

std::span<const Handler> selection_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
