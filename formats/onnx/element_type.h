// ONNX's element types (TensorProto.DataType) and how TensorProto stores them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln::onnx {

// The typed field that holds a type's elements when they are not raw bytes.
enum class TypedField : uint8_t { kFloat, kInt32, kInt64, kUint64, kDouble };

struct ElementType {
  int32_t number;  // TensorProto.DataType
  const char* name;
  std::optional<DType> dtype;  // nullopt: Kiln has no such type
  TypedField field = TypedField::kInt32;
};

// nullptr when ONNX has no element type of that number.
const ElementType* find_element_type(int32_t number);
int32_t number_of(DType dtype);
// "float", "string", or "99" for an unknown number.
std::string element_type_name(int32_t number);

// The element type of a number when Kiln has it. Errors: kCorruptData for a number that ONNX does
// not have, kUnsupported for strings, complex numbers and the types below 8 bits other than 4-bit
// integers.
Result<const ElementType*> supported_element_type(int32_t number);

}  // namespace kiln::onnx
