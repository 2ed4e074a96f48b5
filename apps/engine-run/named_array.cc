#include "apps/engine-run/named_array.h"

#include <cstring>
#include <new>

#include "engine/host_kernels.h"
#include "formats/operation/operation.h"

namespace kiln::run {

Result<NamedArray> make_array(std::string name, const TensorType& type) {
  NamedArray array{std::move(name), type, {}};
  try {
    array.bytes.resize(static_cast<size_t>(type.bytes()));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "tensor '" + array.name + "' " + to_string(type) +
                                              ": no memory for " + std::to_string(type.bytes()) +
                                              " bytes"};
  }
  return array;
}

Result<std::vector<std::byte>> cast_values(const TensorType& type, const void* values, DType to) {
  const TensorType wanted{to, type.shape};
  std::vector<std::byte> result(static_cast<size_t>(wanted.bytes()));
  if (type.dtype == to) {
    if (!result.empty()) std::memcpy(result.data(), values, result.size());
    return result;
  }
  Operation cast{"cast", {}};
  cast.set("to", std::string(to_string(to))).set("saturate", int64_t{1});
  void* out = result.data();
  KILN_RETURN_IF_ERROR(run_host_operation(cast, {&type, 1}, {&values, 1}, {&wanted, 1}, {&out, 1}));
  return result;
}

Result<std::vector<double>> to_doubles(const NamedArray& array) {
  KILN_ASSIGN_OR_RETURN(const auto bytes, cast_values(array.type, array.bytes.data(), DType::kF64));
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<Tensor> views(std::span<NamedArray> arrays) {
  std::vector<Tensor> tensors;
  for (NamedArray& array : arrays) tensors.push_back(array.view());
  return tensors;
}

}  // namespace kiln::run
