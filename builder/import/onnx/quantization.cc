// Quantised operators, exactly as the specification computes them: q = saturate(round(x / s) + z),
// x = (q - z) * s.
#include <cmath>

#include "builder/import/onnx/contraction.h"
#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

struct Range {
  double low, high;
};

std::optional<Range> integer_range(DType dtype) {
  switch (dtype) {
    case DType::kU4:
      return Range{0, 15};
    case DType::kI4:
      return Range{-8, 7};
    case DType::kU8:
      return Range{0, 255};
    case DType::kI8:
      return Range{-128, 127};
    case DType::kU16:
      return Range{0, 65535};
    case DType::kI16:
      return Range{-32768, 32767};
    default:
      return std::nullopt;
  }
}

// A scale that is known while building must be a positive finite number.
Result<> check_scale(NodeContext& c, size_t input) {
  const auto scale = c.constant_of(c.input(input));
  for (double value : scale ? to_doubles(*scale) : std::vector<double>()) {
    if (value > 0 && std::isfinite(value)) continue;
    return c.fail("scale is " + std::to_string(value) + ", expected a positive finite number");
  }
  return Ok();
}

// Shapes a scale or zero point so that it broadcasts to `shape`: one for all, one for each index of
// `axis`, or one for each block along it.
Result<ValueId> spread(NodeContext& c, ValueId parameter, const Shape& shape) {
  const Shape given = c.shape(parameter);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t block = c.get_int("block_size", 0);
  if (block == 0 && element_count(given) == 1 && given.size() <= 1) {
    return c.reshape(parameter, {});
  }
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 1, rank));
  const auto a = static_cast<size_t>(axis);
  if (block == 0) {
    if (given.size() != 1 || given[0] != shape[a]) {
      return c.fail("scale or zero point is " + to_string(c.type(parameter)) + ", axis " +
                    number(axis) + " of " + to_string(shape) + " has extent " + number(shape[a]));
    }
    Shape aligned(shape.size(), 1);
    aligned[a] = shape[a];
    return c.reshape(parameter, aligned);
  }
  Shape blocks = shape;
  if (block > 0) blocks[a] = shape[a] / block + (shape[a] % block != 0);
  if (block < 0 || given != blocks) {
    return c.fail("scale or zero point is " + to_string(c.type(parameter)) + ", expected " +
                  to_string(blocks) + " for block_size " + number(block));
  }
  Shape repeated = blocks, merged = blocks;
  repeated.insert(repeated.begin() + axis + 1, block);
  merged[a] *= block;
  const ValueId wide = c.broadcast(c.unsqueeze(parameter, {axis + 1}), repeated);
  return c.slice_axis(c.reshape(wide, merged), axis, 0, shape[a]);
}

// round(x) + zero point, saturated to the type; x is f32 or f64.
Result<ValueId> to_quantised(NodeContext& c, ValueId x, ValueId zero_point, DType to,
                             bool saturate) {
  if (is_float(to)) return c.cast(x, to, saturate);
  const auto range = integer_range(to);
  if (!range) {
    return c.fail("the quantised type is " + std::string(to_string(to)) +
                  ", expected a 4, 8 or 16-bit integer or an 8-bit float");
  }
  const DType wide = c.dtype(x);
  ValueId y = c.apply(ScalarFn::kRound, {x});
  if (zero_point != kNoValue) y = c.add(y, c.cast(zero_point, wide));
  y = c.apply(ScalarFn::kMax, {y, c.scalar(range->low, wide)});
  y = c.apply(ScalarFn::kMin, {y, c.scalar(range->high, wide)});
  return c.cast(y, to);
}

struct Parameters {
  ValueId scale, zero_point;  // broadcast to the input's shape; no zero point: kNoValue
};

Result<Parameters> read_parameters(NodeContext& c) {
  const Shape shape = c.shape(c.input(0));
  KILN_RETURN_IF_ERROR(check_scale(c, 1));
  Parameters parameters{kNoValue, kNoValue};
  KILN_ASSIGN_OR_RETURN(parameters.scale, spread(c, c.input(1), shape));
  if (c.has(2)) {
    KILN_ASSIGN_OR_RETURN(parameters.zero_point, spread(c, c.input(2), shape));
  }
  return parameters;
}

Outputs quantize(NodeContext& c) {
  const ValueId x = c.input(0);
  KILN_ASSIGN_OR_RETURN(const auto parameters, read_parameters(c));
  const auto [scale, zero_point] = parameters;
  DType to = zero_point == kNoValue ? DType::kU8 : c.dtype(zero_point);
  if (c.get_int("output_dtype", 0) != 0) to = c.get_dtype("output_dtype", to);
  const ValueId quotient = c.div(c.cast(x, DType::kF32), c.cast(scale, DType::kF32));
  KILN_ASSIGN_OR_RETURN(const ValueId y,
                        to_quantised(c, quotient, zero_point, to, c.get_int("saturate", 1) != 0));
  return one(y);
}

// (q - z) as i32, or the value of an 8-bit float.
ValueId centred(NodeContext& c, ValueId q, ValueId zero_point) {
  if (is_float(c.dtype(q))) return c.cast(q, DType::kF32);
  const ValueId wide = c.cast(q, DType::kI32);
  return zero_point == kNoValue ? wide : c.sub(wide, c.cast(zero_point, DType::kI32));
}

Outputs dequantize(NodeContext& c) {
  const ValueId x = c.input(0);
  if (c.has(2) && c.input_type(2).dtype != c.dtype(x)) {
    return c.fail("zero point is " + to_string(c.input_type(2)) + ", input is " +
                  to_string(c.type(x)) + "; ONNX wants one type");
  }
  KILN_ASSIGN_OR_RETURN(const auto parameters, read_parameters(c));
  const auto [scale, zero_point] = parameters;
  DType to = c.dtype(scale);
  if (c.get_int("output_dtype", 0) != 0) to = c.get_dtype("output_dtype", to);
  const ValueId y =
      c.mul(c.cast(centred(c, x, zero_point), DType::kF32), c.cast(scale, DType::kF32));
  return one(c.cast(y, to));
}

// A zero point of `a` is a scalar or one a row, of `b` a scalar or one a column; N-d ones
// broadcast.
ValueId matrix_parameter(NodeContext& c, size_t i, bool rows) {
  if (!c.has(i)) return kNoValue;
  const Shape& shape = c.input_type(i).shape;
  if (c.input_type(i).elements() == 1) return c.reshape(c.input(i), {});
  return rows && shape.size() == 1 ? c.unsqueeze(c.input(i), {1}) : c.input(i);
}

Outputs matmul_integer(NodeContext& c) {
  const ValueId a = centred(c, c.input(0), matrix_parameter(c, 2, true));
  const ValueId b = centred(c, c.input(1), matrix_parameter(c, 3, false));
  return one(numpy_matmul(c, a, b));
}

// Inputs: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
Outputs qlinear_matmul(NodeContext& c) {
  for (size_t scale : {1, 4, 6}) KILN_RETURN_IF_ERROR(check_scale(c, scale));
  const ValueId a = centred(c, c.input(0), matrix_parameter(c, 2, true));
  const ValueId b = centred(c, c.input(3), matrix_parameter(c, 5, false));
  const auto scale = [&](size_t i, bool rows) {
    return c.cast(matrix_parameter(c, i, rows), DType::kF32);
  };
  const ValueId factor = c.div(c.mul(scale(1, true), scale(4, false)), scale(6, true));
  const ValueId product = c.mul(c.cast(numpy_matmul(c, a, b), DType::kF32), factor);
  KILN_ASSIGN_OR_RETURN(const ValueId y, to_quantised(c, product, matrix_parameter(c, 7, true),
                                                      c.input_type(7).dtype, true));
  return one(y);
}

// A per-output-channel parameter of a weight, for a tensor whose channel is axis `channel`.
ValueId weight_parameter(NodeContext& c, ValueId parameter, int64_t rank, size_t channel) {
  if (c.type(parameter).elements() == 1) return c.reshape(parameter, {});
  Shape shape(static_cast<size_t>(rank), 1);
  shape.at(channel) = c.type(parameter).elements();
  return c.reshape(parameter, shape);
}

// A convolution in i32; padded cells are the zero point, 0 after centring.
Result<ValueId> integer_conv(NodeContext& c, ValueId x, ValueId w, ValueId bias) {
  KILN_ASSIGN_OR_RETURN(const ir::Conv op, read_conv(c, c.shape(x), c.shape(w)));
  std::vector<ValueId> inputs{x, w};
  if (bias != kNoValue) inputs.push_back(bias);
  return c.emit(op, inputs);
}

Outputs conv_integer(NodeContext& c) {
  const ValueId x_zero = c.has(2) ? c.reshape(c.input(2), {}) : kNoValue;
  const ValueId w_zero =
      c.has(3) ? weight_parameter(c, c.input(3), c.input_type(1).rank(), 0) : kNoValue;
  KILN_ASSIGN_OR_RETURN(const ValueId y, integer_conv(c, centred(c, c.input(0), x_zero),
                                                      centred(c, c.input(1), w_zero), kNoValue));
  return one(y);
}

// Inputs: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (i32, scale x * w).
Outputs qlinear_conv(NodeContext& c) {
  for (size_t scale : {1, 4, 6}) KILN_RETURN_IF_ERROR(check_scale(c, scale));
  const int64_t rank = c.input_type(3).rank();
  const ValueId x = centred(c, c.input(0), c.reshape(c.input(2), {}));
  const ValueId w = centred(c, c.input(3), weight_parameter(c, c.input(5), rank, 0));
  const ValueId bias = c.has(8) ? c.input(8) : kNoValue;
  KILN_ASSIGN_OR_RETURN(const ValueId sum, integer_conv(c, x, w, bias));
  const ValueId w_scale = weight_parameter(c, c.input(4), rank, 1);
  const ValueId factor =
      c.div(c.mul(c.reshape(c.input(1), {}), w_scale), c.reshape(c.input(6), {}));
  const ValueId product = c.mul(c.cast(sum, DType::kF32), factor);
  KILN_ASSIGN_OR_RETURN(const ValueId y, to_quantised(c, product, c.reshape(c.input(7), {}),
                                                      c.input_type(7).dtype, true));
  return one(y);
}

constexpr Handler kHandlers[] = {
    {"", "ConvInteger", conv_integer},
    {"", "DequantizeLinear", dequantize},
    {"", "MatMulInteger", matmul_integer},
    {"", "QLinearConv", qlinear_conv},
    {"", "QLinearMatMul", qlinear_matmul},
    {"", "QuantizeLinear", quantize},
    {"com.microsoft", "DequantizeLinear", dequantize},
    {"com.microsoft", "QuantizeLinear", quantize},
};

}  // namespace

std::span<const Handler> quantization_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
