#include "builder/import/onnx/emitter.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "builder/import/onnx/limits.h"

namespace kiln::onnx_import {
namespace {

// Nodes over constants up to these sizes are evaluated while importing; larger ones are left to
// the clean pass, so that the imported graph stays what the model says.
constexpr int64_t kFoldInputElements = 1 << 16;
constexpr int64_t kFoldOutputElements = 1 << 12;

template <class T>
SharedBytes bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return SharedBytes::take(std::move(bytes));
}

std::vector<int64_t> iota(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), int64_t{0});
  return values;
}

// Weights of any size stay codes, so that a pass sees that they were quantised.
bool dequantises(const ir::Op& op, const TensorType& from) {
  return std::holds_alternative<ir::Cast>(op) && is_float(from.dtype) && bits_of(from.dtype) == 8;
}

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

}  // namespace

DType compute_dtype(DType dtype) {
  return is_float(dtype) && bits_of(dtype) < 32 ? DType::kF32 : dtype;
}

Emitter::Emitter(ir::Graph& graph, Constants& constants, std::string name,
                 std::vector<std::string> origins)
    : graph_(&graph),
      constants_(&constants),
      name_(std::move(name)),
      origins_(std::move(origins)) {}

const TensorType& Emitter::type(ValueId value) const {
  static const TensorType kScalar;
  return value == kNoValue ? kScalar : graph_->type(value);
}

void Emitter::remember(std::string message, ErrorCode code) {
  if (!error_) error_ = Error{code, std::move(message)};
}

Error Emitter::fail(std::string message, ErrorCode code) {
  remember(std::move(message), code);
  return *error_;
}

ValueId Emitter::emit(ir::Op op, std::vector<ValueId> inputs) {
  const auto outputs = emit_all(std::move(op), std::move(inputs));
  return failed() ? kNoValue : outputs.front();
}

std::vector<ValueId> Emitter::emit_all(ir::Op op, std::vector<ValueId> inputs) {
  if (!failed() && std::count(inputs.begin(), inputs.end(), kNoValue)) {
    remember("an input is missing");
  }
  if (failed()) return {};
  if (auto folded = fold(op, inputs)) return *folded;
  if (failed()) return {};
  std::vector<TensorType> types;
  for (ValueId id : inputs) types.push_back(graph_->type(id));
  auto outputs = ir::infer_types(op, types);
  if (!outputs.ok()) {
    error_ = std::move(outputs).error();
    return {};
  }
  return emit_typed(std::move(op), std::move(inputs), *outputs);
}

std::vector<ValueId> Emitter::emit_typed(ir::Op op, std::vector<ValueId> inputs,
                                         std::span<const TensorType> types) {
  if (failed() || !check_sizes(types)) return {};
  return graph_
      ->node(graph_->add_typed_node(name_, origins_, std::move(op), std::move(inputs), types))
      .outputs;
}

bool Emitter::check_sizes(std::span<const TensorType> types) {
  for (const TensorType& type : types) {
    const auto elements = checked_element_count(type.shape);
    const bool too_deep = type.rank() > kMaxRank;
    if (elements && *elements <= kMaxElements && !too_deep) continue;
    if (too_deep) {
      remember("the result has rank " + std::to_string(type.rank()) + ", expected at most " +
                   std::to_string(kMaxRank),
               ErrorCode::kUnsupported);
      return false;
    }
    remember("the result " + to_string(type) + " has more than 2^36 elements",
             ErrorCode::kUnsupported);
    return false;
  }
  return true;
}

std::optional<std::vector<ValueId>> Emitter::fold(const ir::Op& op,
                                                  const std::vector<ValueId>& inputs) {
  std::vector<HostTensor> arguments;
  std::vector<TensorType> types;
  for (ValueId id : inputs) {
    const ir::Value& value = graph_->value(id);
    if (!value.constant || value.type.elements() > kFoldInputElements) return std::nullopt;
    if (dequantises(op, value.type)) return std::nullopt;
    arguments.push_back({value.type, *value.constant});
    types.push_back(value.type);
  }
  const auto outputs = ir::infer_types(op, types);
  if (!outputs.ok()) return std::nullopt;  // add_node says why, with the node's name
  for (const TensorType& type : *outputs) {
    if (type.elements() > kFoldOutputElements) return std::nullopt;
  }
  auto results = run_reference_op(op, arguments, *outputs);
  if (!results.ok()) {
    if (results.error().code == ErrorCode::kInvalidArgument) error_ = std::move(results).error();
    return std::nullopt;
  }
  std::vector<ValueId> values;
  for (HostTensor& tensor : *results) {
    values.push_back(constant(std::move(tensor.type), std::move(tensor.bytes)));
  }
  return values;
}

std::vector<ValueId> Emitter::opaque(Operation operation, std::vector<ValueId> inputs) {
  return emit_all(ir::Opaque{std::move(operation)}, std::move(inputs));
}

ValueId Emitter::constant(TensorType type, SharedBytes bytes) {
  return graph_->add_constant(name_, std::move(type), std::move(bytes));
}

ValueId Emitter::scalar(double value, DType dtype) {
  if (dtype == DType::kF32) {
    return constant({dtype, {}}, bytes_of(std::vector<float>{static_cast<float>(value)}));
  }
  const ValueId wide = constant({DType::kF64, {}}, bytes_of(std::vector<double>{value}));
  return cast(wide, dtype);
}

ValueId Emitter::scalar_int(int64_t value, DType dtype) {
  return cast(constant({DType::kI64, {}}, bytes_of(std::vector<int64_t>{value})), dtype);
}

ValueId Emitter::ints(const std::vector<int64_t>& values) {
  return constant({DType::kI64, {static_cast<int64_t>(values.size())}}, bytes_of(values));
}

ValueId Emitter::filled(double value, const TensorType& type) {
  return broadcast(scalar(value, type.dtype), type.shape);
}

ValueId Emitter::apply(ScalarFn fn, std::vector<ValueId> arguments) {
  return emit(ir::Pointwise{fn}, std::move(arguments));
}

ValueId Emitter::cast(ValueId x, DType to, bool saturate) {
  if (dtype(x) == to && !failed()) return x;
  return emit(ir::Cast{to, saturate}, {x});
}

ValueId Emitter::reduce(ReduceFn fn, ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  if (axes.empty() && !failed()) return x;
  std::sort(axes.begin(), axes.end());
  return emit(ir::Reduce{fn, std::move(axes), keep_dims}, {x});
}

ValueId Emitter::mean(ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  if (failed()) return kNoValue;
  const DType from = dtype(x), wide = compute_dtype(from);
  int64_t count = 1;
  for (int64_t axis : axes) count *= shape(x).at(at(axis));
  const ValueId sum = reduce(ReduceFn::kSum, cast(x, wide), std::move(axes), keep_dims);
  const ValueId divisor =
      is_float(wide) ? scalar(static_cast<double>(count), wide) : scalar_int(count, wide);
  return cast(div(sum, divisor), from);
}

ValueId Emitter::transpose(ValueId x, std::vector<int64_t> perm) {
  if (!failed() && perm == iota(rank(x))) return x;
  return emit(ir::Transpose{std::move(perm)}, {x});
}

ValueId Emitter::reshape(ValueId x, Shape shape) {
  if (failed() || x == kNoValue) return emit(ir::Reshape{std::move(shape)}, {x});
  if (this->shape(x) == shape) return x;
  const ir::Value& value = graph_->value(x);
  if (value.constant && checked_element_count(shape) == value.type.elements()) {
    return constant({value.type.dtype, std::move(shape)}, *value.constant);
  }
  return emit(ir::Reshape{std::move(shape)}, {x});
}

ValueId Emitter::squeeze(ValueId x, std::vector<int64_t> axes) {
  Shape result = shape(x);
  if (failed()) return kNoValue;
  std::sort(axes.rbegin(), axes.rend());
  for (int64_t axis : axes) {
    if (result.at(at(axis)) != 1) {
      remember("axis " + std::to_string(axis) + " of " + to_string(type(x)) +
               " has another extent than 1");
      return kNoValue;
    }
    result.erase(result.begin() + axis);
  }
  return reshape(x, std::move(result));
}

ValueId Emitter::unsqueeze(ValueId x, std::vector<int64_t> axes) {
  Shape result = shape(x);
  if (failed()) return kNoValue;
  for (int64_t axis : axes) result.insert(result.begin() + axis, 1);
  return reshape(x, std::move(result));
}

ValueId Emitter::broadcast(ValueId x, Shape shape) {
  if (!failed() && x != kNoValue && this->shape(x) == shape) return x;
  return emit(ir::Broadcast{std::move(shape)}, {x});
}

ValueId Emitter::slice(ValueId x, std::vector<int64_t> starts, std::vector<int64_t> sizes,
                       std::vector<int64_t> steps) {
  if (steps.empty()) steps.assign(starts.size(), 1);
  const bool forward = std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 1; });
  if (!failed() && x != kNoValue && sizes == shape(x) && forward) return x;
  return emit(ir::Slice{std::move(starts), std::move(sizes), std::move(steps)}, {x});
}

ValueId Emitter::slice_axis(ValueId x, int64_t axis, int64_t start, int64_t size, int64_t step) {
  if (failed()) return kNoValue;
  std::vector<int64_t> starts(shape(x).size(), 0), steps(shape(x).size(), 1);
  Shape sizes = shape(x);
  starts.at(at(axis)) = start;
  sizes.at(at(axis)) = size;
  steps.at(at(axis)) = step;
  return slice(x, std::move(starts), std::move(sizes), std::move(steps));
}

ValueId Emitter::pad(ValueId x, std::vector<int64_t> before, std::vector<int64_t> after,
                     ValueId value) {
  const auto none = [](const auto& v) {
    return std::all_of(v.begin(), v.end(), [](int64_t n) { return n == 0; });
  };
  if (!failed() && none(before) && none(after)) return x;
  return emit(ir::Pad{std::move(before), std::move(after)}, {x, value});
}

ValueId Emitter::concat(std::vector<ValueId> parts, int64_t axis) {
  if (parts.size() == 1 && !failed()) return parts[0];
  return emit(ir::Concat{axis}, std::move(parts));
}

ValueId Emitter::gather(ValueId x, ValueId indices, int64_t axis) {
  return emit(ir::Gather{axis}, {x, indices});
}

ValueId Emitter::matmul(ValueId a, ValueId b, bool transpose_a, bool transpose_b) {
  return emit(ir::MatMul{transpose_a, transpose_b}, {a, b});
}

ValueId Emitter::softmax(ValueId x, std::vector<int64_t> axes) {
  if (failed()) return kNoValue;
  const DType from = dtype(x);
  const ValueId wide = cast(x, compute_dtype(from));
  const ValueId shifted = sub(wide, reduce(ReduceFn::kMax, wide, axes));
  const ValueId powers = apply(ScalarFn::kExp, {shifted});
  return cast(div(powers, reduce(ReduceFn::kSum, powers, axes)), from);
}

std::optional<HostTensor> Emitter::constant_of(ValueId value) {
  if (value == kNoValue) return std::nullopt;
  return constants_->find(*graph_, value);
}

}  // namespace kiln::onnx_import
