// f16 and bf16 to f32 and back, rounding to nearest even.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace kiln {

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

}  // namespace kiln
