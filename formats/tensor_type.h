// DType and TensorType: the vocabulary for tensors in every room and every file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// The numbers are stored in files: append only.
enum class DType : uint8_t {
  kF32 = 0,
  kF64 = 1,
  kF16 = 2,
  kBF16 = 3,
  kF8E4M3FN = 4,
  kF8E4M3FNUZ = 5,
  kF8E5M2 = 6,
  kF8E5M2FNUZ = 7,
  kI8 = 8,
  kI16 = 9,
  kI32 = 10,
  kI64 = 11,
  kU8 = 12,
  kU16 = 13,
  kU32 = 14,
  kU64 = 15,
  kBool = 16,  // one byte, 0 or 1
  kI4 = 17,    // two elements a byte, the first in the low half; the last byte may be half used
  kU4 = 18,
};
inline constexpr uint8_t kDTypeCount = 19;

// Bits of one element: 4, 8, 16, 32 or 64.
int bits_of(DType dtype);
// "f32", "bf16", "f8e4m3fn", "i64", "bool", "u4", ...
std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

bool is_float(DType dtype);    // any floating-point type, 8-bit ones included
bool is_integer(DType dtype);  // signed or unsigned, not bool
bool is_signed_integer(DType dtype);

using Shape = std::vector<int64_t>;

// Number of elements; nullopt when an extent is negative or the product passes 2^62.
std::optional<int64_t> checked_element_count(const Shape& shape);
// REQUIRES: checked_element_count(shape) has a value.
int64_t element_count(const Shape& shape);
// Row-major strides in elements.
Shape row_major_strides(const Shape& shape);
// "2x3x4"; "scalar" for rank 0.
std::string to_string(const Shape& shape);

// A dense row-major tensor's type; every extent is a number.
struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t elements() const { return element_count(shape); }
  // Bytes of the dense buffer; 4-bit types round up to a whole byte.
  int64_t bytes() const;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// "f32[2x3x4]", "i64[]" for a scalar.
std::string to_string(const TensorType& type);
// The inverse of to_string(TensorType).
std::optional<TensorType> parse_tensor_type(std::string_view text);

}  // namespace kiln
