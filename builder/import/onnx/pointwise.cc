// Arithmetic, comparisons, logic and casts: numpy broadcasting, one IR node each where possible.
#include <limits>

#include "builder/import/onnx/handlers.h"
#include "builder/import/onnx/wide_values.h"

namespace kiln::onnx_import {
namespace {

template <ScalarFn kFn>
Outputs unary(NodeContext& c) {
  return one(apply_keeping_width(c, kFn, {c.input(0)}));
}

template <ScalarFn kFn>
Outputs binary(NodeContext& c) {
  const std::vector<ValueId> arguments{c.input(0), c.input(1)};
  KILN_RETURN_IF_ERROR(c.require_same_dtype(arguments));
  return one(apply_keeping_width(c, kFn, arguments));
}

// Left to right over any number of inputs.
template <ScalarFn kFn>
Outputs variadic(NodeContext& c) {
  const auto values = c.inputs();
  if (values.empty()) return c.fail("found no inputs, expected at least 1");
  KILN_RETURN_IF_ERROR(c.require_same_dtype(values));
  ValueId result = values[0];
  for (size_t i = 1; i < values.size(); ++i) result = c.apply(kFn, {result, values[i]});
  return one(result);
}

Outputs mean(NodeContext& c) {
  const auto values = c.inputs();
  if (values.empty()) return c.fail("found no inputs, expected at least 1");
  KILN_RETURN_IF_ERROR(c.require_same_dtype(values));
  const DType from = c.dtype(values[0]), wide = compute_dtype(from);
  ValueId sum = c.cast(values[0], wide);
  for (size_t i = 1; i < values.size(); ++i) sum = c.add(sum, c.cast(values[i], wide));
  return one(c.cast(c.div(sum, c.scalar(static_cast<double>(values.size()), wide)), from));
}

Outputs pow(NodeContext& c) { return one(c.apply(ScalarFn::kPow, {c.input(0), c.input(1)})); }

Outputs mod(NodeContext& c) {
  const std::vector<ValueId> arguments{c.input(0), c.input(1)};
  KILN_RETURN_IF_ERROR(c.require_same_dtype(arguments));
  const bool c_style = c.get_int("fmod", 0) != 0;
  if (!c_style && c.opset() < 28 && is_float(c.dtype(arguments[0]))) {
    return c.fail("fmod is 0 and the inputs are " + std::string(to_string(c.dtype(arguments[0]))) +
                  "; ONNX wants fmod 1 for floats before operator set 28");
  }
  return one(c.apply(c_style ? ScalarFn::kFmod : ScalarFn::kMod, arguments));
}

DType unsigned_of(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return DType::kU8;
    case DType::kI16:
      return DType::kU16;
    case DType::kI32:
      return DType::kU32;
    default:
      return DType::kU64;
  }
}

// Signed: the shift is done on the bits. A right shift fills with the sign: ~(~x >> n) for negative
// x. Amounts outside of the type's width leave the fill alone.
ValueId signed_shift(NodeContext& c, ValueId x, ValueId amount, bool left) {
  const DType from = c.dtype(x), bits = unsigned_of(from);
  const ValueId zero = c.scalar_int(0, from), ones = c.scalar_int(-1, from);
  const ValueId negative = c.apply(ScalarFn::kLess, {x, zero});
  const ValueId outside =
      c.apply(ScalarFn::kOr,
              {c.apply(ScalarFn::kLess, {amount, zero}),
               c.apply(ScalarFn::kGreaterEqual, {amount, c.scalar_int(bits_of(from), from)})});
  const ValueId safe = c.cast(c.where(outside, zero, amount), bits);
  const auto shift = [&](ValueId y) {
    const ScalarFn fn = left ? ScalarFn::kShiftLeft : ScalarFn::kShiftRight;
    return c.cast(c.apply(fn, {c.cast(y, bits), safe}), from);
  };
  if (left) return c.where(outside, zero, shift(x));
  const ValueId folded = c.where(negative, c.apply(ScalarFn::kBitNot, {x}), x);
  const ValueId moved = shift(folded);
  const ValueId result = c.where(negative, c.apply(ScalarFn::kBitNot, {moved}), moved);
  return c.where(outside, c.where(negative, ones, zero), result);
}

Outputs bit_shift(NodeContext& c) {
  const std::string direction = c.get_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return c.fail("direction is '" + direction + "', expected LEFT or RIGHT");
  }
  const std::vector<ValueId> arguments{c.input(0), c.input(1)};
  KILN_RETURN_IF_ERROR(c.require_same_dtype(arguments));
  const bool left = direction == "LEFT";
  if (is_signed_integer(c.dtype(arguments[0]))) {
    return one(signed_shift(c, arguments[0], arguments[1], left));
  }
  return one(c.apply(left ? ScalarFn::kShiftLeft : ScalarFn::kShiftRight, arguments));
}

Outputs where(NodeContext& c) {
  const std::vector<ValueId> branches{c.input(1), c.input(2)};
  KILN_RETURN_IF_ERROR(c.require_same_dtype(branches));
  return one(c.where(c.input(0), branches[0], branches[1]));
}

Outputs is_inf(NodeContext& c) {
  const bool negative = c.get_int("detect_negative", 1) != 0;
  const bool positive = c.get_int("detect_positive", 1) != 0;
  const ValueId x = c.input(0);
  if (!negative && !positive) return one(c.filled(0, {DType::kBool, c.shape(x)}));
  if (!negative) return one(c.apply(ScalarFn::kIsPosInf, {x}));
  if (!positive) return one(c.apply(ScalarFn::kIsNegInf, {x}));
  return one(c.apply(ScalarFn::kOr,
                     {c.apply(ScalarFn::kIsPosInf, {x}), c.apply(ScalarFn::kIsNegInf, {x})}));
}

// The bounds are attributes before opset 11, optional inputs since. With min > max all is max.
Outputs clip(NodeContext& c) {
  ValueId x = c.input(0);
  const DType dtype = c.dtype(x);
  const bool attributes = c.opset() < 11;
  if (attributes ? c.has_attribute("min") : c.has(1)) {
    const ValueId low = attributes ? c.scalar(c.get_float("min", 0), dtype) : c.input(1);
    x = c.apply(ScalarFn::kMax, {x, low});
  }
  if (attributes ? c.has_attribute("max") : c.has(2)) {
    const ValueId high = attributes ? c.scalar(c.get_float("max", 0), dtype) : c.input(2);
    x = c.apply(ScalarFn::kMin, {x, high});
  }
  return one(c.broadcast(x, c.input_type(0).shape));
}

Outputs cast(NodeContext& c) {
  const DType to = c.get_dtype("to", DType::kF32);
  return one(c.cast(c.input(0), to, c.get_int("saturate", 1) != 0));
}

Outputs cast_like(NodeContext& c) {
  return one(c.cast(c.input(0), c.input_type(1).dtype, c.get_int("saturate", 1) != 0));
}

constexpr Handler kHandlers[] = {
    {"", "Abs", unary<ScalarFn::kAbs>},
    {"", "Acos", unary<ScalarFn::kAcos>},
    {"", "Acosh", unary<ScalarFn::kAcosh>},
    {"", "Add", binary<ScalarFn::kAdd>},
    {"", "And", binary<ScalarFn::kAnd>},
    {"", "Asin", unary<ScalarFn::kAsin>},
    {"", "Asinh", unary<ScalarFn::kAsinh>},
    {"", "Atan", unary<ScalarFn::kAtan>},
    {"", "Atanh", unary<ScalarFn::kAtanh>},
    {"", "BitShift", bit_shift},
    {"", "BitwiseAnd", binary<ScalarFn::kBitAnd>},
    {"", "BitwiseNot", unary<ScalarFn::kBitNot>},
    {"", "BitwiseOr", binary<ScalarFn::kBitOr>},
    {"", "BitwiseXor", binary<ScalarFn::kBitXor>},
    {"", "Cast", cast},
    {"", "CastLike", cast_like},
    {"", "Ceil", unary<ScalarFn::kCeil>},
    {"", "Clip", clip},
    {"", "Cos", unary<ScalarFn::kCos>},
    {"", "Cosh", unary<ScalarFn::kCosh>},
    {"", "Div", binary<ScalarFn::kDiv>},
    {"", "Equal", binary<ScalarFn::kEqual>},
    {"", "Erf", unary<ScalarFn::kErf>},
    {"", "Exp", unary<ScalarFn::kExp>},
    {"", "Floor", unary<ScalarFn::kFloor>},
    {"", "Greater", binary<ScalarFn::kGreater>},
    {"", "GreaterOrEqual", binary<ScalarFn::kGreaterEqual>},
    {"", "IsInf", is_inf},
    {"", "IsNaN", unary<ScalarFn::kIsNan>},
    {"", "Less", binary<ScalarFn::kLess>},
    {"", "LessOrEqual", binary<ScalarFn::kLessEqual>},
    {"", "Log", unary<ScalarFn::kLog>},
    {"", "Max", variadic<ScalarFn::kMax>},
    {"", "Mean", mean},
    {"", "Min", variadic<ScalarFn::kMin>},
    {"", "Mod", mod},
    {"", "Mul", binary<ScalarFn::kMul>},
    {"", "Neg", unary<ScalarFn::kNeg>},
    {"", "Not", unary<ScalarFn::kNot>},
    {"", "Or", binary<ScalarFn::kOr>},
    {"", "Pow", pow},
    {"", "Reciprocal", unary<ScalarFn::kReciprocal>},
    {"", "Round", unary<ScalarFn::kRound>},
    {"", "Sigmoid", unary<ScalarFn::kSigmoid>},
    {"", "Sign", unary<ScalarFn::kSign>},
    {"", "Sin", unary<ScalarFn::kSin>},
    {"", "Sinh", unary<ScalarFn::kSinh>},
    {"", "Sqrt", unary<ScalarFn::kSqrt>},
    {"", "Sub", binary<ScalarFn::kSub>},
    {"", "Sum", variadic<ScalarFn::kAdd>},
    {"", "Tan", unary<ScalarFn::kTan>},
    {"", "Tanh", unary<ScalarFn::kTanh>},
    {"", "Where", where},
    {"", "Xor", binary<ScalarFn::kXor>},
};

}  // namespace

std::span<const Handler> pointwise_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
