// From a dtype known at run time to a C++ type. Kernels compute in these types only: narrow floats
// reach them widened to f32 and 4-bit integers to 8 bits (widen.h).
#pragma once
#include <cstdint>
#include <type_traits>

#include "formats/tensor_type.h"

namespace kiln::host {

// Returns f.template operator()<T>() with T the dtype's type, bool as uint8_t.
// REQUIRES: no narrow float and no 4-bit integer; kernels get those widened.
template <class F>
auto visit_number(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF64:
      return f.template operator()<double>();
    case DType::kI8:
      return f.template operator()<int8_t>();
    case DType::kI16:
      return f.template operator()<int16_t>();
    case DType::kI32:
      return f.template operator()<int32_t>();
    case DType::kI64:
      return f.template operator()<int64_t>();
    case DType::kBool:
    case DType::kU8:
      return f.template operator()<uint8_t>();
    case DType::kU16:
      return f.template operator()<uint16_t>();
    case DType::kU32:
      return f.template operator()<uint32_t>();
    case DType::kU64:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<float>();
  }
}

// REQUIRES: dtype is kF32 or kF64.
template <class F>
auto visit_float(DType dtype, F&& f) {
  return dtype == DType::kF64 ? f.template operator()<double>() : f.template operator()<float>();
}

// An unsigned type of an element's size, for kernels that only move elements.
// REQUIRES: bytes is 1, 2, 4 or 8.
template <class F>
auto visit_size(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

// Arithmetic that wraps instead of being undefined.
template <class T>
constexpr T wrapping_add(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
constexpr T wrapping_mul(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a * b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace kiln::host
