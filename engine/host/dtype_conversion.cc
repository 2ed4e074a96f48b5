#include "engine/host/dtype_conversion.h"

#include <algorithm>
#include <array>
#include <limits>

#include "engine/host/lanes.h"

namespace kiln::host {
namespace {

struct F8Format {
  int mantissa_bits;
  int min_exponent;  // of normal numbers
  uint8_t max_code;  // the largest finite number
  uint8_t overflow;  // what lies above it without saturation
  uint8_t nan;
  bool unsigned_zero_only;  // the FNUZ types: 0x80 is NaN
};

const F8Format& f8_format(DType dtype) {
  static constexpr F8Format kE4M3FN{3, -6, 0x7E, 0x7F, 0x7F, false};
  static constexpr F8Format kE4M3FNUZ{3, -7, 0x7F, 0x80, 0x80, true};
  static constexpr F8Format kE5M2{2, -14, 0x7B, 0x7C, 0x7F, false};
  static constexpr F8Format kE5M2FNUZ{2, -15, 0x7F, 0x80, 0x80, true};
  switch (dtype) {
    case DType::kF8E4M3FN:
      return kE4M3FN;
    case DType::kF8E4M3FNUZ:
      return kE4M3FNUZ;
    case DType::kF8E5M2:
      return kE5M2;
    default:
      return kE5M2FNUZ;
  }
}

struct IntegerRange {
  int bits;
  bool is_signed;
};

IntegerRange range_of(DType dtype) { return {bits_of(dtype), is_signed_integer(dtype)}; }

}  // namespace

float f8_to_float(DType dtype, uint8_t value) {
  const F8Format& format = f8_format(dtype);
  const uint8_t code = value & 0x7F;
  const bool negative = (value & 0x80) != 0;
  if (format.unsigned_zero_only ? value == format.nan : code > format.max_code) {
    const bool infinite = code == format.overflow && format.overflow != format.nan;
    if (!infinite) return std::numeric_limits<float>::quiet_NaN();
    return negative ? -std::numeric_limits<float>::infinity()
                    : std::numeric_limits<float>::infinity();
  }
  const int field = code >> format.mantissa_bits;
  const int fraction = code & ((1 << format.mantissa_bits) - 1);
  const int mantissa = field == 0 ? fraction : fraction + (1 << format.mantissa_bits);
  const int exponent = std::max(field - 1, 0) + format.min_exponent - format.mantissa_bits;
  const float magnitude = std::ldexp(static_cast<float>(mantissa), exponent);
  return negative ? -magnitude : magnitude;
}

uint8_t float_to_f8(DType dtype, float value, bool saturate) {
  const F8Format& format = f8_format(dtype);
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return format.nan | sign;
  const auto out_of_range = [&]() -> uint8_t {
    return (saturate ? format.max_code : format.overflow) | sign;
  };
  if (std::isinf(value)) return out_of_range();
  const float magnitude = std::fabs(value);
  if (magnitude == 0) return format.unsigned_zero_only ? 0 : sign;
  const int exponent = std::max(std::ilogb(magnitude), format.min_exponent);
  // Whole steps of the last mantissa bit; a carry out of the mantissa lands in the exponent.
  const float steps = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  const int code =
      ((exponent - format.min_exponent) << format.mantissa_bits) + static_cast<int>(steps);
  if (code > format.max_code) return out_of_range();
  if (code == 0 && format.unsigned_zero_only) return 0;
  return static_cast<uint8_t>(code) | sign;
}

float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

int64_t wrap_integer(DType dtype, int64_t value) {
  const auto [bits, is_signed] = range_of(dtype);
  const int unused = 64 - bits;
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  return is_signed ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
}

int64_t saturate_to_integer(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  const auto [bits, is_signed] = range_of(dtype);
  const double end = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  const uint64_t max = is_signed ? (uint64_t{1} << (bits - 1)) - 1 : ~uint64_t{0} >> (64 - bits);
  if (value >= end) return static_cast<int64_t>(max);
  if (!is_signed) return value <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value));
  return value < -end ? -static_cast<int64_t>(max) - 1 : static_cast<int64_t>(value);
}

int8_t load_4bit(DType dtype, const void* data, int64_t index) {
  const uint8_t pair = static_cast<const uint8_t*>(data)[index / 2];
  const uint8_t half = index % 2 == 0 ? pair & 0xF : pair >> 4;
  return static_cast<int8_t>(wrap_integer(dtype, half));
}

void store_4bit(void* data, int64_t index, int8_t value) {
  uint8_t& pair = static_cast<uint8_t*>(data)[index / 2];
  const int shift = index % 2 == 0 ? 0 : 4;
  pair = static_cast<uint8_t>((pair & (0xF0 >> shift)) | ((value & 0xF) << shift));
}

void convert(DType from, const void* in, DType to, void* out, int64_t count, bool saturate) {
  constexpr int64_t kBlock = 512;
  alignas(64) std::array<std::byte, kBlock * 8> loaded, cast;
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t size = std::min(kBlock, count - first);
    load_lanes(from, in, first, 1, size, loaded.data());
    cast_lanes(from, loaded.data(), to, cast.data(), size, saturate);
    store_lanes(to, out, first, 1, size, cast.data(), saturate);
  }
}

}  // namespace kiln::host
