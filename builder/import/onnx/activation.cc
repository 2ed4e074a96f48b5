// Activation functions, spelled out in IR primitives. Narrow floats are computed in f32 and rounded
// once at the end.
#include <cmath>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

// Runs `body` on the first input in its compute type and rounds the result to the input's type.
template <class Body>
Outputs in_wide(NodeContext& c, Body body) {
  const ValueId x = c.input(0);
  const DType from = c.dtype(x);
  return one(c.cast(body(c.cast(x, compute_dtype(from))), from));
}

ValueId number(NodeContext& c, ValueId like, double value) {
  return c.scalar(value, c.dtype(like));
}

ValueId negative(NodeContext& c, ValueId x) {
  return c.apply(ScalarFn::kLess, {x, number(c, x, 0)});
}

// log(1 + exp(x)) without overflow.
ValueId softplus(NodeContext& c, ValueId x) {
  const ValueId decay =
      c.apply(ScalarFn::kExp, {c.apply(ScalarFn::kNeg, {c.apply(ScalarFn::kAbs, {x})})});
  const ValueId tail = c.apply(ScalarFn::kLog, {c.add(decay, number(c, x, 1))});
  return c.add(c.apply(ScalarFn::kMax, {x, number(c, x, 0)}), tail);
}

ValueId clamp01(NodeContext& c, ValueId x) {
  const ValueId low = c.apply(ScalarFn::kMax, {x, number(c, x, 0)});
  return c.apply(ScalarFn::kMin, {low, number(c, x, 1)});
}

ValueId gelu_erf(NodeContext& c, ValueId x) {
  const ValueId erf = c.apply(ScalarFn::kErf, {c.div(x, number(c, x, std::sqrt(2.0)))});
  return c.mul(x, c.mul(c.add(erf, number(c, x, 1)), number(c, x, 0.5)));
}

ValueId gelu_tanh(NodeContext& c, ValueId x) {
  const ValueId cube = c.mul(x, c.mul(x, x));
  const ValueId inner =
      c.mul(c.add(x, c.mul(cube, number(c, x, 0.044715))), number(c, x, std::sqrt(2.0 / M_PI)));
  const ValueId tanh = c.apply(ScalarFn::kTanh, {inner});
  return c.mul(x, c.mul(c.add(tanh, number(c, x, 1)), number(c, x, 0.5)));
}

Outputs relu(NodeContext& c) {
  const ValueId x = c.input(0);
  return one(c.apply(ScalarFn::kMax, {x, number(c, x, 0)}));
}

Outputs leaky_relu(NodeContext& c) {
  const double alpha = c.get_float("alpha", 0.01);
  return in_wide(
      c, [&](ValueId x) { return c.where(negative(c, x), c.mul(x, number(c, x, alpha)), x); });
}

// The slope broadcasts to the input, never the other way.
Outputs prelu(NodeContext& c) {
  const ValueId x = c.input(0), slope = c.broadcast(c.input(1), c.input_type(0).shape);
  return one(c.where(negative(c, x), c.mul(x, slope), x));
}

Outputs elu(NodeContext& c) {
  const double alpha = c.get_float("alpha", 1.0);
  return in_wide(c, [&](ValueId x) {
    const ValueId curve = c.sub(c.apply(ScalarFn::kExp, {x}), number(c, x, 1));
    return c.where(negative(c, x), c.mul(curve, number(c, x, alpha)), x);
  });
}

Outputs celu(NodeContext& c) {
  const double alpha = c.get_float("alpha", 1.0);
  return in_wide(c, [&](ValueId x) {
    const ValueId power = c.apply(ScalarFn::kExp, {c.div(x, number(c, x, alpha))});
    const ValueId curve = c.mul(c.sub(power, number(c, x, 1)), number(c, x, alpha));
    return c.add(c.apply(ScalarFn::kMax, {x, number(c, x, 0)}),
                 c.apply(ScalarFn::kMin, {curve, number(c, x, 0)}));
  });
}

Outputs selu(NodeContext& c) {
  const double alpha = c.get_float("alpha", 1.67326319217681884765625);
  const double gamma = c.get_float("gamma", 1.05070102214813232421875);
  return in_wide(c, [&](ValueId x) {
    const ValueId curve =
        c.sub(c.mul(c.apply(ScalarFn::kExp, {x}), number(c, x, alpha)), number(c, x, alpha));
    const ValueId positive = c.apply(ScalarFn::kGreater, {x, number(c, x, 0)});
    return c.mul(c.where(positive, x, curve), number(c, x, gamma));
  });
}

Outputs hard_sigmoid(NodeContext& c) {
  const double alpha = c.get_float("alpha", 0.2), beta = c.get_float("beta", 0.5);
  return in_wide(c, [&](ValueId x) {
    return clamp01(c, c.add(c.mul(x, number(c, x, alpha)), number(c, x, beta)));
  });
}

Outputs hard_swish(NodeContext& c) {
  return in_wide(c, [&](ValueId x) {
    const ValueId line = c.add(c.mul(x, number(c, x, 1.0 / 6.0)), number(c, x, 0.5));
    return c.mul(x, clamp01(c, line));
  });
}

Outputs swish(NodeContext& c) {
  const double alpha = c.get_float("alpha", 1.0);
  return in_wide(c, [&](ValueId x) {
    const ValueId scaled = alpha == 1.0 ? x : c.mul(x, number(c, x, alpha));
    return c.mul(x, c.apply(ScalarFn::kSigmoid, {scaled}));
  });
}

Outputs softplus_op(NodeContext& c) {
  return in_wide(c, [&](ValueId x) { return softplus(c, x); });
}

Outputs softsign(NodeContext& c) {
  return in_wide(
      c, [&](ValueId x) { return c.div(x, c.add(c.apply(ScalarFn::kAbs, {x}), number(c, x, 1))); });
}

Outputs mish(NodeContext& c) {
  return in_wide(c,
                 [&](ValueId x) { return c.mul(x, c.apply(ScalarFn::kTanh, {softplus(c, x)})); });
}

Outputs thresholded_relu(NodeContext& c) {
  const double alpha = c.get_float("alpha", 1.0);
  return in_wide(c, [&](ValueId x) {
    const ValueId above = c.apply(ScalarFn::kGreater, {x, number(c, x, alpha)});
    return c.where(above, x, number(c, x, 0));
  });
}

// x + bias below -lambd, x - bias above lambd, 0 between.
Outputs shrink(NodeContext& c) {
  const double bias = c.get_float("bias", 0.0), lambda = c.get_float("lambd", 0.5);
  const ValueId input = c.input(0);
  const DType from = c.dtype(input);
  const DType wide = is_float(from) ? compute_dtype(from) : DType::kF64;
  const ValueId x = c.cast(input, wide);
  const ValueId below = c.apply(ScalarFn::kLess, {x, number(c, x, -lambda)});
  const ValueId above = c.apply(ScalarFn::kGreater, {x, number(c, x, lambda)});
  const ValueId upper = c.where(above, c.sub(x, number(c, x, bias)), number(c, x, 0));
  return one(c.cast(c.where(below, c.add(x, number(c, x, bias)), upper), from));
}

Outputs gelu(NodeContext& c) {
  const std::string approximate = c.get_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    return c.fail("approximate is '" + approximate + "', expected none or tanh");
  }
  return in_wide(
      c, [&](ValueId x) { return approximate == "tanh" ? gelu_tanh(c, x) : gelu_erf(c, x); });
}

ValueId biased(NodeContext& c, ValueId x) {
  return c.has(1) ? c.add(x, c.cast(c.input(1), c.dtype(x))) : x;
}

Outputs bias_gelu(NodeContext& c) {
  return in_wide(c, [&](ValueId x) { return gelu_erf(c, biased(c, x)); });
}

Outputs fast_gelu(NodeContext& c) {
  return in_wide(c, [&](ValueId x) { return gelu_tanh(c, biased(c, x)); });
}

Outputs quick_gelu(NodeContext& c) {
  const double alpha = c.get_float("alpha", 1.702);
  return in_wide(c, [&](ValueId x) {
    return c.mul(x, c.apply(ScalarFn::kSigmoid, {c.mul(x, number(c, x, alpha))}));
  });
}

constexpr Handler kHandlers[] = {
    {"", "Celu", celu},
    {"", "Elu", elu},
    {"", "Gelu", gelu},
    {"", "HardSigmoid", hard_sigmoid},
    {"", "HardSwish", hard_swish},
    {"", "LeakyRelu", leaky_relu},
    {"", "Mish", mish},
    {"", "PRelu", prelu},
    {"", "Relu", relu},
    {"", "Selu", selu},
    {"", "Shrink", shrink},
    {"", "Softplus", softplus_op},
    {"", "Softsign", softsign},
    {"", "Swish", swish},
    {"", "ThresholdedRelu", thresholded_relu},
    {"com.microsoft", "BiasGelu", bias_gelu},
    {"com.microsoft", "FastGelu", fast_gelu},
    {"com.microsoft", "Gelu", gelu},
    {"com.microsoft", "QuickGelu", quick_gelu},
};

}  // namespace

std::span<const Handler> activation_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
