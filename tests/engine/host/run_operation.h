// Runs one host operation, given as text, on literal tensors.
#pragma once
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/host_kernels.h"
#include "formats/operation/operation.h"

namespace kiln::testing {

struct HostTensor {
  TensorType type;
  std::vector<std::byte> bytes;

  template <class T>
  std::vector<T> values() const {
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
};

template <class T>
HostTensor tensor(DType dtype, Shape shape, const std::vector<T>& values) {
  HostTensor result{{dtype, std::move(shape)}, std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
  return result;
}
inline HostTensor f32(Shape shape, const std::vector<float>& values) {
  return tensor(DType::kF32, std::move(shape), values);
}
inline HostTensor i32(Shape shape, const std::vector<int32_t>& values) {
  return tensor(DType::kI32, std::move(shape), values);
}
inline HostTensor i64(Shape shape, const std::vector<int64_t>& values) {
  return tensor(DType::kI64, std::move(shape), values);
}
inline HostTensor u8(Shape shape, const std::vector<uint8_t>& values) {
  return tensor(DType::kU8, std::move(shape), values);
}
inline HostTensor boolean(Shape shape, const std::vector<uint8_t>& values) {
  return tensor(DType::kBool, std::move(shape), values);
}
// 0, 1, 2, ... times `step`.
inline HostTensor ramp(Shape shape, float step = 1) {
  std::vector<float> values(element_count(shape));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * step;
  return f32(std::move(shape), values);
}

inline Operation operation(std::string_view text) { return *parse_operation(text); }

// All outputs; their buffers start out as garbage.
inline Result<std::vector<HostTensor>> try_run(std::string_view text,
                                               const std::vector<HostTensor>& inputs) {
  KILN_ASSIGN_OR_RETURN(const Operation op, parse_operation(text));
  std::vector<TensorType> in_types;
  std::vector<const void*> in;
  for (const HostTensor& t : inputs) {
    in_types.push_back(t.type);
    in.push_back(t.bytes.data());
  }
  KILN_ASSIGN_OR_RETURN(const auto out_types, infer_host_operation(op, in_types));
  std::vector<HostTensor> outputs;
  for (const TensorType& type : out_types) {
    outputs.push_back({type, std::vector<std::byte>(type.bytes(), std::byte{0xA5})});
  }
  std::vector<void*> out;
  for (HostTensor& t : outputs) out.push_back(t.bytes.data());
  KILN_RETURN_IF_ERROR(run_host_operation(op, in_types, in, out_types, out));
  return outputs;
}

// The first output. An error fails the test by throwing.
inline HostTensor run(std::string_view text, const std::vector<HostTensor>& inputs) {
  auto outputs = try_run(text, inputs);
  if (!outputs.ok()) throw std::runtime_error(outputs.error().message);
  return outputs->front();
}

inline std::string error_of(std::string_view text, const std::vector<HostTensor>& inputs) {
  const auto outputs = try_run(text, inputs);
  return outputs.ok() ? "" : outputs.error().message;
}

}  // namespace kiln::testing
