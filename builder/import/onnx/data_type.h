// ONNX's TensorProto.DataType numbers, as attributes such as Cast's `to` hold them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "formats/tensor_type.h"

namespace kiln::onnx_import {

// nullopt for strings, complex numbers and numbers that ONNX does not have.
std::optional<DType> dtype_of_onnx(int64_t data_type);
// "string", "complex64", "number 99".
std::string onnx_type_name(int64_t data_type);

}  // namespace kiln::onnx_import
