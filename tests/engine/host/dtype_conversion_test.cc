#include "engine/host/dtype_conversion.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace kiln::host {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The value of a 16-bit float by its definition.
double value_of_16(uint16_t code, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int field = (code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int fraction = code & ((1 << mantissa_bits) - 1);
  const double sign = code & 0x8000 ? -1 : 1;
  if (field == (1 << exponent_bits) - 1) return fraction ? std::nan("") : sign * kInf;
  const double significand = field ? fraction + std::ldexp(1.0, mantissa_bits) : fraction;
  return sign * std::ldexp(significand, std::max(field, 1) - bias - mantissa_bits);
}

// Nearest even by search among the neighbours' definitions.
uint16_t nearest_16(double value, int mantissa_bits, uint16_t infinity) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  uint16_t low = 0, high = infinity;
  while (high - low > 1) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (value_of_16(middle, mantissa_bits) <= magnitude ? low : high) = middle;
  }
  // Infinity stands for the next number that a wider exponent would have.
  const double below = value_of_16(low, mantissa_bits);
  const double above = high == infinity
                           ? 2 * below - value_of_16(static_cast<uint16_t>(low - 1), mantissa_bits)
                           : value_of_16(high, mantissa_bits);
  const double middle = (below + above) / 2;
  const bool up = magnitude > middle || (magnitude == middle && low % 2 == 1);
  return static_cast<uint16_t>((up ? high : low) | sign);
}

TEST(DTypeConversion, Every16BitCodeHasItsValue) {
  for (int code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<uint16_t>(code);
    const double half = value_of_16(bits, 10), brain = value_of_16(bits, 7);
    if (std::isnan(half))
      EXPECT_TRUE(std::isnan(f16_to_float(bits)));
    else
      EXPECT_EQ(f16_to_float(bits), half) << code;
    if (std::isnan(brain))
      EXPECT_TRUE(std::isnan(bf16_to_float(bits)));
    else
      EXPECT_EQ(bf16_to_float(bits), brain) << code;
    if (std::isnan(half) || std::isnan(brain)) continue;
    EXPECT_EQ(float_to_f16(f16_to_float(bits)), bits);
    EXPECT_EQ(float_to_bf16(bf16_to_float(bits)), bits);
  }
}

TEST(DTypeConversion, RoundsToNearestEven) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    EXPECT_EQ(float_to_bf16(value), nearest_16(value, 7, 0x7F80)) << value;
    const float nearer = std::ldexp(static_cast<float>(random()) - 2e9f, int(random() % 45) - 45);
    EXPECT_EQ(float_to_f16(nearer), nearest_16(nearer, 10, 0x7C00)) << nearer;
  }
  EXPECT_EQ(float_to_f16(65519.996f), 0x7BFF);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_f16(-kInf), 0xFC00);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(kNan))));
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(kNan))));
}

TEST(DTypeConversion, DoublesRoundOnce) {
  // Just above the middle of 1 and its f16 successor; through f32 it would become the tie.
  const double value = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(float_to_f16(round_to_odd(value)), 0x3C01);
  uint16_t half = 0;
  convert(DType::kF64, &value, DType::kF16, &half, 1);
  EXPECT_EQ(half, 0x3C01);
}

TEST(DTypeConversion, F8FormatsHaveTheirLandmarks) {
  EXPECT_EQ(f8_to_float(DType::kF8E4M3FN, 0x7E), 448.0f);
  EXPECT_EQ(f8_to_float(DType::kF8E4M3FN, 0x01), 0x1p-9f);
  EXPECT_TRUE(std::isnan(f8_to_float(DType::kF8E4M3FN, 0xFF)));
  EXPECT_EQ(f8_to_float(DType::kF8E4M3FNUZ, 0x7F), 240.0f);
  EXPECT_TRUE(std::isnan(f8_to_float(DType::kF8E4M3FNUZ, 0x80)));
  EXPECT_EQ(f8_to_float(DType::kF8E5M2, 0x7B), 57344.0f);
  EXPECT_EQ(f8_to_float(DType::kF8E5M2, 0xFC), -kInf);
  EXPECT_TRUE(std::isnan(f8_to_float(DType::kF8E5M2, 0x7D)));
  EXPECT_EQ(f8_to_float(DType::kF8E5M2FNUZ, 0x7F), 57344.0f);
  EXPECT_EQ(f8_to_float(DType::kF8E5M2FNUZ, 0x01), 0x1p-17f);
}

TEST(DTypeConversion, F8CodesRoundTrip) {
  for (DType dtype : {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ}) {
    for (int code = 0; code < 256; ++code) {
      const float value = f8_to_float(dtype, static_cast<uint8_t>(code));
      if (std::isnan(value)) continue;
      EXPECT_EQ(float_to_f8(dtype, value, false), code) << to_string(dtype);
    }
  }
}

TEST(DTypeConversion, F8FollowsOnnxCastTable) {
  const auto e4m3 = [](float v, bool saturate) {
    return float_to_f8(DType::kF8E4M3FN, v, saturate);
  };
  EXPECT_EQ(e4m3(500, true), 0x7E);
  EXPECT_EQ(e4m3(-kInf, true), 0xFE);
  EXPECT_EQ(e4m3(500, false), 0x7F);
  EXPECT_EQ(e4m3(kInf, false), 0x7F);
  EXPECT_EQ(e4m3(17, true), 0x58);  // a tie: 16
  EXPECT_EQ(e4m3(9e-4f, true), 0);
  EXPECT_EQ(e4m3(-0.0f, true), 0x80);
  EXPECT_EQ(float_to_f8(DType::kF8E4M3FNUZ, -0.0f), 0);
  EXPECT_EQ(float_to_f8(DType::kF8E4M3FNUZ, kInf, false), 0x80);
  EXPECT_EQ(float_to_f8(DType::kF8E4M3FNUZ, kInf, true), 0x7F);
  EXPECT_EQ(float_to_f8(DType::kF8E5M2, kInf, true), 0x7B);
  EXPECT_EQ(float_to_f8(DType::kF8E5M2, 1e9f, false), 0x7C);
  EXPECT_EQ(float_to_f8(DType::kF8E5M2FNUZ, -1e9f, true), 0xFF);
}

TEST(DTypeConversion, FloatToIntegerSaturatesAndNanIsZero) {
  const float in[] = {kNan, kInf, -kInf, 3e9f, -1.9f, 2.9f, 300.0f};
  int32_t wide[7];
  convert(DType::kF32, in, DType::kI32, wide, 7);
  const int32_t max = std::numeric_limits<int32_t>::max();
  const int32_t expected[] = {0, max, std::numeric_limits<int32_t>::min(), max, -1, 2, 300};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(wide[i], expected[i]) << i;
  uint8_t narrow[7];
  convert(DType::kF32, in, DType::kU8, narrow, 7);
  const uint8_t expected_narrow[] = {0, 255, 0, 255, 0, 2, 255};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(narrow[i], expected_narrow[i]) << i;
  const double large[] = {1.8446744073709552e19, 9.3e18, -1.0, 9007199254740993.0};
  uint64_t u64[4];
  convert(DType::kF64, large, DType::kU64, u64, 4);
  EXPECT_EQ(u64[0], ~uint64_t{0});
  EXPECT_EQ(u64[1], uint64_t{9300000000000000000u});
  EXPECT_EQ(u64[2], 0u);
  int64_t i64[4];
  convert(DType::kF64, large, DType::kI64, i64, 4);
  EXPECT_EQ(i64[0], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(i64[3], 9007199254740992);
}

TEST(DTypeConversion, IntegersWrapAndBoolsAreNormalised) {
  const int32_t in[] = {257, -1, 128, 0};
  uint8_t u8[4];
  convert(DType::kI32, in, DType::kU8, u8, 4);
  EXPECT_EQ(u8[0], 1);
  EXPECT_EQ(u8[1], 255);
  int8_t i8[4];
  convert(DType::kI32, in, DType::kI8, i8, 4);
  EXPECT_EQ(i8[2], -128);
  uint8_t flags[4];
  convert(DType::kI32, in, DType::kBool, flags, 4);
  EXPECT_EQ(flags[0], 1);
  EXPECT_EQ(flags[3], 0);
  const uint8_t dirty[] = {5, 0};
  int64_t counts[2];
  convert(DType::kBool, dirty, DType::kI64, counts, 2);
  EXPECT_EQ(counts[0], 1);
  const uint64_t large = uint64_t{1} << 63;
  float real = 0;
  convert(DType::kU64, &large, DType::kF32, &real, 1);
  EXPECT_EQ(real, 0x1p63f);
}

TEST(DTypeConversion, FourBitElementsShareBytes) {
  const int8_t in[] = {-8, 7, -1};
  uint8_t packed[2] = {0, 0xF0};
  convert(DType::kI8, in, DType::kI4, packed, 3);
  EXPECT_EQ(packed[0], 0x78);
  EXPECT_EQ(packed[1], 0xFF);  // the unused half keeps what it had
  int8_t back[3];
  convert(DType::kI4, packed, DType::kI8, back, 3);
  EXPECT_EQ(back[0], -8);
  EXPECT_EQ(back[1], 7);
  EXPECT_EQ(back[2], -1);
  uint8_t bytes[3];
  convert(DType::kU4, packed, DType::kU8, bytes, 3);
  EXPECT_EQ(bytes[0], 8);
}

// As ONNX's test_cast_FLOAT_to_INT4 and ONNX Runtime have it.
TEST(DTypeConversion, FloatsKeepTheLowFourBits) {
  const float in[] = {-9, -8, 7.9f, 8, 9, 300, kNan, 1e30f};
  uint8_t packed[4];
  int8_t back[8];
  convert(DType::kF32, in, DType::kI4, packed, 8);
  convert(DType::kI4, packed, DType::kI8, back, 8);
  EXPECT_EQ(std::to_array(back), (std::array<int8_t, 8>{7, -8, 7, -8, -7, -4, 0, -1}));
  convert(DType::kF32, in, DType::kU4, packed, 8);
  convert(DType::kU4, packed, DType::kU8, back, 8);
  EXPECT_EQ(std::to_array(back), (std::array<int8_t, 8>{7, 8, 7, 8, 9, 12, 0, 15}));
}

}  // namespace
}  // namespace kiln::host
