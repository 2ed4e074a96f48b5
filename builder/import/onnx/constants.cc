#include "builder/import/onnx/constants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

namespace kiln::onnx_import {
namespace {

// What one evaluation on demand may cost.
constexpr int64_t kMaxBytes = int64_t{256} << 20;
constexpr size_t kMaxNodes = 10000;

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

// The nodes behind `value`, producers first; nullopt if one of the sources is no constant.
std::optional<std::vector<NodeId>> producers(const Graph& graph, ValueId value) {
  std::vector<NodeId> order;
  std::set<NodeId> done;
  std::vector<std::pair<ValueId, bool>> stack{{value, false}};
  while (!stack.empty()) {
    const auto [id, visited] = stack.back();
    stack.pop_back();
    if (graph.value(id).constant) continue;
    const NodeId node = graph.value(id).producer;
    if (node == ir::kNoNode) return std::nullopt;
    if (visited) {
      if (done.insert(node).second) order.push_back(node);
      continue;
    }
    if (done.count(node)) continue;
    if (order.size() + stack.size() > kMaxNodes) return std::nullopt;
    stack.emplace_back(id, true);
    for (ValueId input : graph.node(node).inputs) stack.emplace_back(input, false);
  }
  return order;
}

// 8-bit floats: sign, exponent, mantissa; fnuz types have one NaN and no negative zero.
double float8(uint8_t bits, int exponent_bits, int bias, bool fnuz, bool has_infinity) {
  const int mantissa_bits = 7 - exponent_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double sign = bits & 0x80 ? -1.0 : 1.0;
  if (fnuz && bits == 0x80) return std::nan("");
  if (!fnuz && exponent == (1 << exponent_bits) - 1) {
    if (has_infinity) return mantissa == 0 ? sign * INFINITY : std::nan("");
    if (mantissa == (1 << mantissa_bits) - 1) return std::nan("");
  }
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1.0 + fraction, exponent - bias));
}

double float16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? std::nan("") : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

template <class T>
T load(const std::byte* data, size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

int64_t load_nibble(const std::byte* data, size_t i, bool is_signed) {
  const int byte = std::to_integer<int>(data[i / 2]);
  const int nibble = i % 2 == 0 ? byte & 15 : byte >> 4;
  return is_signed && nibble > 7 ? nibble - 16 : nibble;
}

double float_element(DType dtype, const std::byte* data, size_t i) {
  switch (dtype) {
    case DType::kF64:
      return load<double>(data, i);
    case DType::kF16:
      return float16(load<uint16_t>(data, i));
    case DType::kBF16:
      return std::bit_cast<float>(uint32_t{load<uint16_t>(data, i)} << 16);
    case DType::kF8E4M3FN:
      return float8(load<uint8_t>(data, i), 4, 7, false, false);
    case DType::kF8E4M3FNUZ:
      return float8(load<uint8_t>(data, i), 4, 8, true, false);
    case DType::kF8E5M2:
      return float8(load<uint8_t>(data, i), 5, 15, false, true);
    case DType::kF8E5M2FNUZ:
      return float8(load<uint8_t>(data, i), 5, 16, true, false);
    default:
      return load<float>(data, i);
  }
}

int64_t int_element(DType dtype, const std::byte* data, size_t i) {
  switch (dtype) {
    case DType::kI8:
      return load<int8_t>(data, i);
    case DType::kI16:
      return load<int16_t>(data, i);
    case DType::kI32:
      return load<int32_t>(data, i);
    case DType::kU16:
      return load<uint16_t>(data, i);
    case DType::kU32:
      return load<uint32_t>(data, i);
    case DType::kI64:
    case DType::kU64:
      return load<int64_t>(data, i);
    case DType::kI4:
      return load_nibble(data, i, true);
    case DType::kU4:
      return load_nibble(data, i, false);
    default:
      return load<uint8_t>(data, i);  // u8 and bool
  }
}

}  // namespace

std::optional<HostTensor> Constants::find(const Graph& graph, ValueId value) {
  if (graph.value(value).constant)
    return HostTensor{graph.type(value), *graph.value(value).constant};
  if (const auto it = known_.find({&graph, value}); it != known_.end()) return it->second;
  const auto order = producers(graph, value);
  if (!order) return std::nullopt;
  for (NodeId id : *order) {
    const ir::Node& node = graph.node(id);
    if (known_.count({&graph, node.outputs[0]})) continue;
    std::vector<HostTensor> inputs;
    std::vector<TensorType> types;
    for (ValueId input : node.inputs) {
      const auto& constant = graph.value(input).constant;
      inputs.push_back(constant ? HostTensor{graph.type(input), *constant}
                                : known_.at({&graph, input}));
    }
    for (ValueId output : node.outputs) types.push_back(graph.type(output));
    auto results = run_reference_op(node.op, inputs, types, {.max_value_bytes = kMaxBytes});
    if (!results.ok()) return std::nullopt;
    for (size_t i = 0; i < types.size(); ++i) known_[{&graph, node.outputs[i]}] = (*results)[i];
  }
  return known_.at({&graph, value});
}

std::vector<std::string> Constants::inputs_behind(const Graph& graph, ValueId value) {
  std::set<std::string> names;
  std::set<ValueId> seen;
  std::vector<ValueId> stack{value};
  while (!stack.empty()) {
    const ValueId id = stack.back();
    stack.pop_back();
    if (graph.value(id).constant || !seen.insert(id).second) continue;
    const NodeId node = graph.value(id).producer;
    if (node == ir::kNoNode) {
      names.insert(graph.value(id).name);
    } else {
      const auto& inputs = graph.node(node).inputs;
      stack.insert(stack.end(), inputs.begin(), inputs.end());
    }
  }
  return {names.begin(), names.end()};
}

std::vector<int64_t> to_ints(const HostTensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.type.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = int_element(tensor.type.dtype, tensor.bytes.data(), i);
  }
  return values;
}

std::vector<double> to_doubles(const HostTensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.type.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = is_float(tensor.type.dtype)
                    ? float_element(tensor.type.dtype, tensor.bytes.data(), i)
                    : static_cast<double>(int_element(tensor.type.dtype, tensor.bytes.data(), i));
  }
  return values;
}

}  // namespace kiln::onnx_import
