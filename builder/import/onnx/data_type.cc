#include "builder/import/onnx/data_type.h"

namespace kiln::onnx_import {
namespace {

struct Row {
  int64_t number;
  DType dtype;
};
constexpr Row kRows[] = {
    {1, DType::kF32},     {2, DType::kU8},          {3, DType::kI8},
    {4, DType::kU16},     {5, DType::kI16},         {6, DType::kI32},
    {7, DType::kI64},     {9, DType::kBool},        {10, DType::kF16},
    {11, DType::kF64},    {12, DType::kU32},        {13, DType::kU64},
    {16, DType::kBF16},   {17, DType::kF8E4M3FN},   {18, DType::kF8E4M3FNUZ},
    {19, DType::kF8E5M2}, {20, DType::kF8E5M2FNUZ}, {21, DType::kU4},
    {22, DType::kI4},
};

}  // namespace

std::optional<DType> dtype_of_onnx(int64_t data_type) {
  for (const Row& row : kRows) {
    if (row.number == data_type) return row.dtype;
  }
  return std::nullopt;
}

std::string onnx_type_name(int64_t data_type) {
  if (const auto dtype = dtype_of_onnx(data_type)) return std::string(to_string(*dtype));
  switch (data_type) {
    case 8:
      return "string";
    case 14:
      return "complex64";
    case 15:
      return "complex128";
    case 23:
      return "float4e2m1";
    case 24:
      return "float8e8m0";
    case 25:
      return "uint2";
    case 26:
      return "int2";
    default:
      return "number " + std::to_string(data_type);
  }
}

}  // namespace kiln::onnx_import
