// The one place where values change their dtype on the host: narrow floats, 4-bit integers, and
// ONNX's Cast with Kiln's policy where the standard leaves the result open: float to integer
// truncates and saturates, but to 4 bits keeps the low ones, as ONNX's own tests do; NaN becomes 0;
// integer to integer wraps; everything rounds to nearest even, once.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "formats/tensor_type.h"

namespace kiln::host {

// Branch-free, so that loops over them vectorise.
inline float f16_to_float(uint16_t half) {
  const uint32_t wide = static_cast<uint32_t>(half) << 16;
  const uint32_t sign = wide & 0x80000000u;
  const uint32_t magnitude = wide + wide;
  const float normal = std::bit_cast<float>((magnitude >> 4) + (0xE0u << 23)) * 0x1.0p-112f;
  const float subnormal = std::bit_cast<float>((magnitude >> 17) | (126u << 23)) - 0.5f;
  const float value = magnitude < (1u << 27) ? subnormal : normal;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

inline uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits + bits;
  // Multiplying up and down turns what rounds past 65504 into infinity; adding the bias then
  // rounds the mantissa at f16's last bit, subnormals included.
  const float scaled = (std::fabs(value) * 0x1.0p+112f) * 0x1.0p-110f;
  const uint32_t exponent = magnitude & 0xFF000000u;
  const uint32_t bias = exponent < 0x71000000u ? 0x71000000u : exponent;
  const float base = std::bit_cast<float>((bias >> 1) + 0x07800000u) + scaled;
  const uint32_t rounded = std::bit_cast<uint32_t>(base);
  const uint32_t finite = ((rounded >> 13) & 0x7C00u) + (rounded & 0x0FFFu);
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) |
                               (magnitude > 0xFF000000u ? 0x7E00u : finite));
}

inline float bf16_to_float(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits >> 16) | 0x40u : rounded);
}

// REQUIRES: an 8-bit float type. Without `saturate`, values out of range become infinity where the
// type has one and NaN otherwise (ONNX's table for Cast).
float f8_to_float(DType dtype, uint8_t value);
uint8_t float_to_f8(DType dtype, float value, bool saturate = true);

// The f32 from which rounding to any float of at most 16 bits gives the same as from `value`.
float round_to_odd(double value);

// The low bits of `value`, extended to 64 bits as the integer type has it (u64: unchanged bits).
int64_t wrap_integer(DType dtype, int64_t value);
// Truncated and saturated to the integer type; NaN is 0. The bits of a u64 for u64.
int64_t saturate_to_integer(DType dtype, double value);

// Element i of dense 4-bit data, sign- or zero-extended.
int8_t load_4bit(DType dtype, const void* data, int64_t index);
void store_4bit(void* data, int64_t index, int8_t value);

// ONNX's Cast of `count` dense elements. Buffers may not overlap.
void convert(DType from, const void* in, DType to, void* out, int64_t count, bool saturate = true);

}  // namespace kiln::host
