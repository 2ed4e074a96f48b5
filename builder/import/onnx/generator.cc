// Operators that make tensors out of attributes and shapes: all are constants or broadcasts.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

// Generated values are stored in the engine, unlike broadcasts.
constexpr int64_t kMaxGenerated = int64_t{1} << 26;

template <class T>
ValueId numbers(NodeContext& c, const std::vector<T>& values, Shape shape, DType dtype) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return c.constant({dtype, std::move(shape)}, SharedBytes::take(std::move(bytes)));
}

Outputs constant(NodeContext& c) {
  if (auto tensor = c.get_tensor(c.has_attribute("sparse_value") ? "sparse_value" : "value")) {
    return one(c.constant(std::move(tensor->type), std::move(tensor->bytes)));
  }
  if (c.has_attribute("value_int")) {
    return one(c.reshape(c.ints({c.get_int("value_int", 0)}), {}));
  }
  if (c.has_attribute("value_ints")) return one(c.ints(c.get_ints("value_ints")));
  if (c.has_attribute("value_float")) {
    return one(c.scalar(c.get_float("value_float", 0), DType::kF32));
  }
  if (c.has_attribute("value_floats")) {
    const auto wide = c.get_floats("value_floats");
    const std::vector<float> values(wide.begin(), wide.end());
    return one(numbers(c, values, {static_cast<int64_t>(values.size())}, DType::kF32));
  }
  return c.unsupported("the constant is a string or has no value, expected numbers");
}

Outputs constant_of_shape(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Shape shape, c.known_ints(0, "shape"));
  if (!checked_element_count(shape)) return c.fail("shape is " + to_string(shape));
  ValueId value = c.scalar(0, DType::kF32);
  if (auto tensor = c.get_tensor("value")) {
    if (tensor->type.elements() != 1) {
      return c.fail("value is " + to_string(tensor->type) + ", expected one element");
    }
    value = c.reshape(c.constant(std::move(tensor->type), std::move(tensor->bytes)), {});
  }
  return one(c.broadcast(value, shape));
}

// Shape since 15 may take a part of the axes.
Outputs shape(NodeContext& c) {
  const Shape& shape = c.input_type(0).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const auto clamp = [rank](int64_t i) {
    return std::clamp(i < 0 ? i + rank : i, int64_t{0}, rank);
  };
  const int64_t start = clamp(c.get_int("start", 0));
  const int64_t end = std::max(start, clamp(c.get_int("end", rank)));
  return one(c.ints({shape.begin() + start, shape.begin() + end}));
}

Outputs size(NodeContext& c) { return one(c.reshape(c.ints({c.input_type(0).elements()}), {})); }

template <class T>
std::vector<T> arithmetic_sequence(T start, T delta, int64_t count) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(start + static_cast<T>(i) * delta);
  return values;
}

Outputs range(NodeContext& c) {
  const DType dtype = c.input_type(0).dtype;
  if (c.failed()) return *c.error();
  double count = 0;
  if (is_float(dtype)) {
    double parameters[3];
    for (size_t i = 0; i < 3; ++i) {
      KILN_ASSIGN_OR_RETURN(const auto values, c.known_floats(i, "range"));
      if (values.size() != 1) return c.fail("start, limit and delta must be scalars");
      parameters[i] = values[0];
    }
    if (parameters[2] == 0) return c.fail("delta is 0");
    count = std::max(0.0, std::ceil((parameters[1] - parameters[0]) / parameters[2]));
    if (!(count <= static_cast<double>(kMaxGenerated))) return c.fail("the range is too long");
    const auto values =
        arithmetic_sequence(parameters[0], parameters[2], static_cast<int64_t>(count));
    return one(c.cast(numbers(c, values, {static_cast<int64_t>(count)}, DType::kF64), dtype));
  }
  int64_t parameters[3];
  for (size_t i = 0; i < 3; ++i) {
    KILN_ASSIGN_OR_RETURN(parameters[i], c.known_int(i, "range"));
  }
  if (parameters[2] == 0) return c.fail("delta is 0");
  const auto distance = static_cast<__int128>(parameters[1]) - parameters[0];
  const auto step = static_cast<__int128>(parameters[2]);
  const __int128 steps = distance / step + (distance % step != 0 && (distance > 0) == (step > 0));
  if (steps > kMaxGenerated) return c.fail("the range is too long");
  const auto values = arithmetic_sequence(parameters[0], parameters[2],
                                          std::max<int64_t>(0, static_cast<int64_t>(steps)));
  return one(c.cast(c.ints(values), dtype));
}

Outputs eye_like(NodeContext& c) {
  const TensorType& type = c.input_type(0);
  if (type.rank() != 2 || type.elements() > kMaxGenerated) {
    return c.fail("input is " + to_string(type) + ", expected rank 2 and at most " +
                  std::to_string(kMaxGenerated) + " elements");
  }
  const int64_t rows = type.shape[0], columns = type.shape[1], k = c.get_int("k", 0);
  std::vector<uint8_t> values(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    const __int128 column = static_cast<__int128>(row) + k;
    if (column >= 0 && column < columns) {
      values[static_cast<size_t>(row * columns + static_cast<int64_t>(column))] = 1;
    }
  }
  const DType to = c.get_dtype("dtype", type.dtype);
  return one(c.cast(numbers(c, values, {rows, columns}, DType::kU8), to));
}

constexpr Handler kHandlers[] = {
    {"", "Constant", constant}, {"", "ConstantOfShape", constant_of_shape},
    {"", "EyeLike", eye_like},  {"", "Range", range},
    {"", "Shape", shape},       {"", "Size", size},
};

}  // namespace

std::span<const Handler> generator_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
