// ReduceX: axes are an attribute before opset 18 (13 for ReduceSum), an input since.
#include <numeric>

#include "builder/import/onnx/handlers.h"
#include "builder/import/onnx/wide_values.h"

namespace kiln::onnx_import {
namespace {

struct Axes {
  std::vector<int64_t> axes;
  bool keep_dims = true;
  bool identity = false;  // no axes and noop_with_empty_axes
};

Result<Axes> read_axes(NodeContext& c, int64_t axes_input_since) {
  const int64_t rank = c.input_type(0).rank();
  Axes result;
  result.keep_dims = c.get_int("keepdims", 1) != 0;
  KILN_ASSIGN_OR_RETURN(result.axes, c.axes(1, axes_input_since, rank));
  if (!result.axes.empty()) return result;
  result.identity = c.get_int("noop_with_empty_axes", 0) != 0;
  if (!result.identity) {
    result.axes.resize(static_cast<size_t>(rank));
    std::iota(result.axes.begin(), result.axes.end(), int64_t{0});
  }
  return result;
}

// Reads the axes, hands the body the input in its compute type, and rounds what it returns.
template <class Body>
Outputs reduction(NodeContext& c, Body body, int64_t axes_input_since = 18) {
  const ValueId x = c.input(0);
  KILN_ASSIGN_OR_RETURN(const Axes axes, read_axes(c, axes_input_since));
  if (axes.identity) return one(x);
  return one(narrow(c, body(widen(c, x), axes), c.dtype(x)));
}

ValueId sum(NodeContext& c, ValueId x, const Axes& axes) {
  return c.reduce(ReduceFn::kSum, x, axes.axes, axes.keep_dims);
}

template <ReduceFn kFn, ReduceFn kBoolFn>
Outputs extreme(NodeContext& c) {
  return reduction(c, [&](ValueId x, const Axes& axes) {
    const ReduceFn fn = c.dtype(x) == DType::kBool ? kBoolFn : kFn;
    return c.reduce(fn, x, axes.axes, axes.keep_dims);
  });
}

Outputs reduce_sum(NodeContext& c) {
  return reduction(c, [&](ValueId x, const Axes& axes) { return sum(c, x, axes); }, 13);
}

Outputs reduce_prod(NodeContext& c) {
  return reduction(c, [&](ValueId x, const Axes& axes) {
    return c.reduce(ReduceFn::kProd, x, axes.axes, axes.keep_dims);
  });
}

Outputs reduce_mean(NodeContext& c) {
  return reduction(
      c, [&](ValueId x, const Axes& axes) { return c.mean(x, axes.axes, axes.keep_dims); });
}

Outputs reduce_l1(NodeContext& c) {
  return reduction(
      c, [&](ValueId x, const Axes& axes) { return sum(c, c.apply(ScalarFn::kAbs, {x}), axes); });
}

// Square roots of integers go through f64.
Outputs reduce_l2(NodeContext& c) {
  return reduction(c, [&](ValueId x, const Axes& axes) {
    const DType from = c.dtype(x), wide = is_float(from) ? from : DType::kF64;
    const ValueId y = c.cast(x, wide);
    return c.cast(c.apply(ScalarFn::kSqrt, {sum(c, c.mul(y, y), axes)}), from);
  });
}

Outputs reduce_sum_square(NodeContext& c) {
  return reduction(c, [&](ValueId x, const Axes& axes) { return sum(c, c.mul(x, x), axes); });
}

Outputs reduce_log_sum(NodeContext& c) {
  return reduction(c, [&](ValueId x, const Axes& axes) {
    const DType from = c.dtype(x), wide = is_float(from) ? from : DType::kF64;
    return c.cast(c.apply(ScalarFn::kLog, {sum(c, c.cast(x, wide), axes)}), from);
  });
}

// The maximum is taken out first, unless it is infinite.
Outputs reduce_log_sum_exp(NodeContext& c) {
  return reduction(c, [&](ValueId input, const Axes& axes) {
    const DType from = c.dtype(input), wide = is_float(from) ? from : DType::kF64;
    const ValueId x = c.cast(input, wide);
    const ValueId largest = c.reduce(ReduceFn::kMax, x, axes.axes, true);
    const ValueId infinite = c.apply(ScalarFn::kOr, {c.apply(ScalarFn::kIsPosInf, {largest}),
                                                     c.apply(ScalarFn::kIsNegInf, {largest})});
    const ValueId shift = c.where(infinite, c.scalar(0, wide), largest);
    const ValueId powers = c.apply(ScalarFn::kExp, {c.sub(x, shift)});
    const ValueId log =
        c.apply(ScalarFn::kLog, {c.reduce(ReduceFn::kSum, powers, axes.axes, true)});
    const ValueId kept = c.add(log, shift);
    return c.cast(axes.keep_dims ? kept : c.squeeze(kept, axes.axes), from);
  });
}

constexpr Handler kHandlers[] = {
    {"", "ReduceL1", reduce_l1},
    {"", "ReduceL2", reduce_l2},
    {"", "ReduceLogSum", reduce_log_sum},
    {"", "ReduceLogSumExp", reduce_log_sum_exp},
    {"", "ReduceMax", extreme<ReduceFn::kMax, ReduceFn::kAny>},
    {"", "ReduceMean", reduce_mean},
    {"", "ReduceMin", extreme<ReduceFn::kMin, ReduceFn::kAll>},
    {"", "ReduceProd", reduce_prod},
    {"", "ReduceSum", reduce_sum},
    {"", "ReduceSumSquare", reduce_sum_square},
};

}  // namespace

std::span<const Handler> reduction_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
