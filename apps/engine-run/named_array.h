// NamedArray: a named tensor that owns its bytes: what requests are made of and files hold.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/tensor.h"
#include "formats/result.h"

namespace kiln::run {

struct NamedArray {
  std::string name;
  TensorType type;
  std::vector<std::byte> bytes;  // type.bytes(), dense, row-major

  Tensor view() { return {name, type, bytes.data(), MemoryKind::kHost}; }
};

// Room for tensors of these names and types, zeroed. kOutOfMemory if there is none.
Result<NamedArray> make_array(std::string name, const TensorType& type);

// The same values in another dtype, by ONNX's Cast; `values` is dense data of `type`.
Result<std::vector<std::byte>> cast_values(const TensorType& type, const void* values, DType to);
Result<std::vector<double>> to_doubles(const NamedArray& array);

std::vector<Tensor> views(std::span<NamedArray> arrays);

}  // namespace kiln::run
