// Normalisations and softmax, spelled out in IR primitives; statistics in f32 at least.
#include <numeric>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

std::vector<int64_t> axes_between(int64_t first, int64_t last) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(last - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// A per-channel vector [C] shaped to broadcast along axis 1 of `rank`.
ValueId per_channel(NodeContext& c, ValueId vector, int64_t rank, DType dtype) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape.at(rank > 1 ? 1 : 0) = c.type(vector).elements();
  return c.cast(c.reshape(vector, std::move(shape)), dtype);
}

struct Normalised {
  ValueId value, mean, inverse_deviation;
};

// (x - mean) / sqrt(variance + epsilon) over `axes`.
Normalised normalise(NodeContext& c, ValueId x, const std::vector<int64_t>& axes, double epsilon) {
  const ValueId mean = c.mean(x, axes);
  const ValueId centred = c.sub(x, mean);
  const ValueId variance = c.mean(c.mul(centred, centred), axes);
  const ValueId deviation =
      c.apply(ScalarFn::kSqrt, {c.add(variance, c.scalar(epsilon, c.dtype(x)))});
  return {c.div(centred, deviation), mean, c.apply(ScalarFn::kReciprocal, {deviation})};
}

// x / sqrt(mean(x^2) + epsilon).
Normalised rms_normalise(NodeContext& c, ValueId x, const std::vector<int64_t>& axes,
                         double epsilon) {
  const ValueId square = c.mean(c.mul(x, x), axes);
  const ValueId root = c.apply(ScalarFn::kSqrt, {c.add(square, c.scalar(epsilon, c.dtype(x)))});
  return {c.div(x, root), kNoValue, c.apply(ScalarFn::kReciprocal, {root})};
}

ValueId affine(NodeContext& c, ValueId x, ValueId scale, ValueId bias) {
  const DType dtype = c.dtype(x);
  if (scale != kNoValue) x = c.mul(x, c.cast(scale, dtype));
  return bias == kNoValue ? x : c.add(x, c.cast(bias, dtype));
}

ValueId optional_input(NodeContext& c, size_t i) { return c.has(i) ? c.input(i) : kNoValue; }

// Softmax before opset 13 treats all axes from `axis` on as one.
Result<std::vector<int64_t>> softmax_axes(NodeContext& c) {
  const int64_t rank = c.input_type(0).rank();
  if (rank == 0) return std::vector<int64_t>{};
  const bool flattens = c.opset() < 13;
  int64_t axis = c.get_int("axis", flattens ? 1 : -1);
  if (flattens && axis == rank) return std::vector<int64_t>{};  // rows of one element
  KILN_ASSIGN_OR_RETURN(axis, c.normalise_axis(axis, rank));
  return axes_between(axis, flattens ? rank : axis + 1);
}

Outputs softmax(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(auto axes, softmax_axes(c));
  return one(c.softmax(c.input(0), std::move(axes)));
}

Outputs log_softmax(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const auto axes, softmax_axes(c));
  const DType from = c.dtype(c.input(0));
  const ValueId x = c.cast(c.input(0), compute_dtype(from));
  const ValueId shifted = c.sub(x, c.reduce(ReduceFn::kMax, x, axes));
  const ValueId sum = c.reduce(ReduceFn::kSum, c.apply(ScalarFn::kExp, {shifted}), axes);
  return one(c.cast(c.sub(shifted, c.apply(ScalarFn::kLog, {sum})), from));
}

// Training mode: statistics of the batch, and the running ones moved towards them.
Outputs batch_norm_training(NodeContext& c, ValueId x, DType wide) {
  const double epsilon = c.get_float("epsilon", 1e-5), momentum = c.get_float("momentum", 0.9);
  const int64_t rank = c.rank(x);
  std::vector<int64_t> axes = axes_between(0, rank);
  axes.erase(axes.begin() + (rank > 1 ? 1 : 0));
  const Normalised n = normalise(c, c.cast(x, wide), axes, epsilon);
  const ValueId centred = c.sub(c.cast(x, wide), n.mean);
  const ValueId variance = c.mean(c.mul(centred, centred), axes);
  const ValueId y = affine(c, n.value, per_channel(c, c.input(1), rank, wide),
                           per_channel(c, c.input(2), rank, wide));
  const auto running = [&](ValueId old, ValueId now) {
    const ValueId flat = c.reshape(now, c.shape(old));
    return c.cast(c.add(c.mul(c.cast(old, wide), c.scalar(momentum, wide)),
                        c.mul(flat, c.scalar(1.0 - momentum, wide))),
                  c.dtype(old));
  };
  return std::vector<ValueId>{c.cast(y, c.dtype(x)), running(c.input(3), n.mean),
                              running(c.input(4), variance)};
}

// scale and shift per channel; both are constants when the statistics are.
Outputs batch_norm(NodeContext& c) {
  const ValueId x = c.input(0);
  if (c.failed() || c.rank(x) < 1) return c.fail("input is a scalar, expected rank 1 or more");
  const int64_t rank = c.rank(x), channels = c.shape(x)[rank > 1 ? 1 : 0];
  for (size_t i = 1; i < 5; ++i) {
    if (c.input_type(i).shape != Shape{channels} && rank > 1) {
      return c.fail("input " + std::to_string(i) + " is " + to_string(c.input_type(i)) +
                    ", expected " + std::to_string(channels) + " channels");
    }
  }
  const DType from = c.dtype(x), wide = compute_dtype(from);
  if (c.get_int("training_mode", 0) != 0) return batch_norm_training(c, x, wide);
  if (c.opset() < 9 && c.get_int("spatial", 1) == 0) return c.unsupported("spatial is 0");
  const ValueId variance = c.cast(c.input(4), wide), mean = c.cast(c.input(3), wide);
  const ValueId deviation =
      c.apply(ScalarFn::kSqrt, {c.add(variance, c.scalar(c.get_float("epsilon", 1e-5), wide))});
  const ValueId scale = c.div(c.cast(c.input(1), wide), deviation);
  const ValueId shift = c.sub(c.cast(c.input(2), wide), c.mul(mean, scale));
  const ValueId scaled = c.mul(c.cast(x, wide), per_channel(c, scale, rank, wide));
  return one(c.cast(c.add(scaled, per_channel(c, shift, rank, wide)), from));
}

Outputs instance_norm(NodeContext& c) {
  const ValueId x = c.input(0);
  const int64_t rank = c.rank(x);
  if (rank < 3) return c.fail("input is " + to_string(c.type(x)) + ", expected rank 3 or more");
  const DType from = c.dtype(x), wide = compute_dtype(from);
  const Normalised n =
      normalise(c, c.cast(x, wide), axes_between(2, rank), c.get_float("epsilon", 1e-5));
  return one(c.cast(affine(c, n.value, per_channel(c, c.input(1), rank, wide),
                           per_channel(c, c.input(2), rank, wide)),
                    from));
}

// Scale and bias are per group before opset 21, per channel since.
Outputs group_norm(NodeContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  const int64_t groups = c.get_int("num_groups", 0);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0) {
    return c.fail("num_groups is " + std::to_string(groups) + ", input is " + to_string(c.type(x)) +
                  ", expected a divisor of the channels");
  }
  const DType from = c.dtype(x), wide = compute_dtype(from);
  const int64_t per_group = shape[1] / groups;
  Shape split{shape[0], groups, per_group};
  split.insert(split.end(), shape.begin() + 2, shape.end());
  const auto rank = static_cast<int64_t>(split.size());
  const Normalised n = normalise(c, c.reshape(c.cast(x, wide), split), axes_between(2, rank),
                                 c.get_float("epsilon", 1e-5));
  const auto parameter = [&](size_t i) {
    Shape target(split.size(), 1);
    target[1] = groups;
    if (c.input_type(i).elements() != groups || c.opset() >= 21) target[2] = per_group;
    return c.cast(c.reshape(c.input(i), target), wide);
  };
  return one(c.cast(c.reshape(affine(c, n.value, parameter(1), parameter(2)), shape), from));
}

Outputs layer_norm(NodeContext& c) {
  const ValueId x = c.input(0);
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", -1, c.rank(x)));
  const DType from = c.dtype(x), wide = compute_dtype(from);
  const Normalised n =
      normalise(c, c.cast(x, wide), axes_between(axis, c.rank(x)), c.get_float("epsilon", 1e-5));
  const ValueId y = affine(c, n.value, c.input(1), optional_input(c, 2));
  return std::vector<ValueId>{c.cast(y, from), n.mean, n.inverse_deviation};
}

Outputs rms_norm(NodeContext& c) {
  const ValueId x = c.input(0);
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", -1, c.rank(x)));
  const DType from = c.dtype(x), wide = compute_dtype(from);
  const Normalised n = rms_normalise(c, c.cast(x, wide), axes_between(axis, c.rank(x)),
                                     c.get_float("epsilon", 1e-5));
  return std::vector<ValueId>{c.cast(affine(c, n.value, c.input(1), kNoValue), from),
                              n.inverse_deviation};
}

// x + skip (+ bias), normalised over the last axis. Inputs: x, skip, scale, [shift,] [bias].
Outputs skip_norm(NodeContext& c, bool rms) {
  const ValueId x = c.input(0);
  const DType from = c.dtype(x), wide = compute_dtype(from);
  const size_t bias = rms ? 3 : 4;
  ValueId sum = c.add(c.cast(x, wide), c.cast(c.input(1), wide));
  if (c.has(bias)) sum = c.add(sum, c.cast(c.input(bias), wide));
  const double epsilon = c.get_float("epsilon", 1e-12);
  const std::vector<int64_t> last{c.rank(x) - 1};
  const Normalised n =
      rms ? rms_normalise(c, sum, last, epsilon) : normalise(c, sum, last, epsilon);
  const ValueId y = affine(c, n.value, c.input(2), rms ? kNoValue : optional_input(c, 3));
  const ValueId mean = rms ? n.inverse_deviation : n.mean;
  return std::vector<ValueId>{c.cast(y, from), mean, n.inverse_deviation, c.cast(sum, from)};
}

Outputs skip_layer_norm(NodeContext& c) { return skip_norm(c, false); }
Outputs skip_rms_norm(NodeContext& c) { return skip_norm(c, true); }

// The sum of absolute values (p 1) or the Euclidean norm (p 2) along one axis becomes 1.
Outputs lp_norm(NodeContext& c) {
  const ValueId input = c.input(0);
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", -1, c.rank(input)));
  const int64_t p = c.get_int("p", 2);
  if (p != 1 && p != 2) return c.fail("p is " + std::to_string(p) + ", expected 1 or 2");
  const DType from = c.dtype(input);
  const ValueId x = c.cast(input, compute_dtype(from));
  const ValueId part = p == 1 ? c.apply(ScalarFn::kAbs, {x}) : c.mul(x, x);
  const ValueId sum = c.reduce(ReduceFn::kSum, part, {axis});
  const ValueId norm = p == 1 ? sum : c.apply(ScalarFn::kSqrt, {sum});
  const ValueId zero = c.scalar(0, c.dtype(x));
  const ValueId quotient = c.div(x, norm);
  return one(c.cast(c.where(c.apply(ScalarFn::kEqual, {norm, zero}), zero, quotient), from));
}

Outputs mean_variance_norm(NodeContext& c) {
  const ValueId input = c.input(0);
  std::vector<int64_t> axes =
      c.has_attribute("axes") ? c.get_ints("axes") : std::vector<int64_t>{0, 2, 3};
  KILN_ASSIGN_OR_RETURN(axes, c.normalise_axes(std::move(axes), c.rank(input)));
  const DType from = c.dtype(input);
  const ValueId x = c.cast(input, compute_dtype(from));
  const ValueId centred = c.sub(x, c.mean(x, axes));
  const ValueId deviation = c.apply(ScalarFn::kSqrt, {c.mean(c.mul(centred, centred), axes)});
  const ValueId safe = c.add(deviation, c.scalar(1e-9, c.dtype(x)));
  return one(c.cast(c.div(centred, safe), from));
}

// Without training_mode it passes its input on, and the mask is all true.
Outputs dropout(NodeContext& c) {
  const ValueId x = c.input(0);
  if (c.opset() >= 12 && c.has(2)) {
    KILN_ASSIGN_OR_RETURN(const int64_t training, c.known_int(2, "training_mode"));
    double ratio = 0.5;
    if (c.has(1)) {
      KILN_ASSIGN_OR_RETURN(const auto ratios, c.known_floats(1, "ratio"));
      ratio = ratios.size() == 1 ? ratios[0] : ratio;
    }
    if (training != 0 && ratio != 0) {
      return c.unsupported("training_mode is true; Kiln runs inference only");
    }
  }
  if (!c.wants(1)) return one(x);
  const DType mask = c.opset() < 10 ? c.dtype(x) : DType::kBool;
  return std::vector<ValueId>{x, c.filled(1, {mask, c.shape(x)})};
}

constexpr Handler kHandlers[] = {
    {"", "BatchNormalization", batch_norm},
    {"", "Dropout", dropout},
    {"", "GroupNormalization", group_norm},
    {"", "InstanceNormalization", instance_norm},
    {"", "LayerNormalization", layer_norm},
    {"", "LogSoftmax", log_softmax},
    {"", "LpNormalization", lp_norm},
    {"", "MeanVarianceNormalization", mean_variance_norm},
    {"", "RMSNormalization", rms_norm},
    {"", "SimplifiedLayerNormalization", rms_norm},
    {"", "Softmax", softmax},
    {"com.microsoft", "SimplifiedLayerNormalization", rms_norm},
    {"com.microsoft", "SkipLayerNormalization", skip_layer_norm},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", skip_rms_norm},
};

}  // namespace

std::span<const Handler> normalization_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
