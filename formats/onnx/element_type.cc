#include "formats/onnx/element_type.h"

#include <array>

namespace kiln::onnx {
namespace {

using enum TypedField;

constexpr std::array<ElementType, 28> kElementTypes = {{
    {1, "float", DType::kF32, kFloat},
    {2, "uint8", DType::kU8},
    {3, "int8", DType::kI8},
    {4, "uint16", DType::kU16},
    {5, "int16", DType::kI16},
    {6, "int32", DType::kI32},
    {7, "int64", DType::kI64, kInt64},
    {8, "string", std::nullopt},
    {9, "bool", DType::kBool},
    {10, "float16", DType::kF16},
    {11, "double", DType::kF64, kDouble},
    {12, "uint32", DType::kU32, kUint64},
    {13, "uint64", DType::kU64, kUint64},
    {14, "complex64", std::nullopt},
    {15, "complex128", std::nullopt},
    {16, "bfloat16", DType::kBF16},
    {17, "float8e4m3fn", DType::kF8E4M3FN},
    {18, "float8e4m3fnuz", DType::kF8E4M3FNUZ},
    {19, "float8e5m2", DType::kF8E5M2},
    {20, "float8e5m2fnuz", DType::kF8E5M2FNUZ},
    {21, "uint4", DType::kU4},
    {22, "int4", DType::kI4},
    {23, "float4e2m1", std::nullopt},
    {24, "float8e8m0", std::nullopt},
    {25, "uint2", std::nullopt},
    {26, "int2", std::nullopt},
    {27, "float6e2m3", std::nullopt},
    {28, "float6e3m2", std::nullopt},
}};

}  // namespace

const ElementType* find_element_type(int32_t number) {
  if (number < 1 || number > static_cast<int32_t>(kElementTypes.size())) return nullptr;
  return &kElementTypes[static_cast<size_t>(number) - 1];
}

int32_t number_of(DType dtype) {
  for (const ElementType& type : kElementTypes) {
    if (type.dtype == dtype) return type.number;
  }
  return 0;
}

std::string element_type_name(int32_t number) {
  const ElementType* type = find_element_type(number);
  return type ? type->name : std::to_string(number);
}

Result<const ElementType*> supported_element_type(int32_t number) {
  const ElementType* type = find_element_type(number);
  if (!type) {
    return Error{ErrorCode::kCorruptData, "data type " + std::to_string(number) +
                                              " is unknown, expected 1 to " +
                                              std::to_string(kElementTypes.size())};
  }
  if (!type->dtype) {
    return Error{ErrorCode::kUnsupported,
                 std::string("data type ") + type->name + " is not supported"};
  }
  return type;
}

}  // namespace kiln::onnx
