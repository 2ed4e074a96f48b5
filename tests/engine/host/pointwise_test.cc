#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/host/run_operation.h"

namespace kiln::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using F = std::vector<float>;
using I = std::vector<int32_t>;

TEST(Pointwise, BroadcastsLikeNumpy) {
  const auto sum = run("add", {f32({2, 1, 3}, {0, 1, 2, 10, 11, 12}), f32({2, 1}, {100, 200})});
  EXPECT_EQ(sum.type, (TensorType{DType::kF32, {2, 2, 3}}));
  EXPECT_EQ(sum.values<float>(), (F{100, 101, 102, 200, 201, 202, 110, 111, 112, 210, 211, 212}));
}

TEST(Pointwise, BroadcastsOverSeveralBlocks) {
  const auto sum = run("add", {ramp({3, 2000}), f32({3, 1}, {0.5F, 1.5F, 2.5F})});
  const auto values = sum.values<float>();
  for (int i = 0; i < 6000; ++i) {
    ASSERT_EQ(values[i], static_cast<float>(i) + static_cast<float>(i / 2000) + 0.5F) << i;
  }
}

TEST(Pointwise, IntegersWrapAndTruncate) {
  EXPECT_EQ(run("div", {i32({4}, {-7, 7, INT32_MIN, 5}), i32({4}, {2, -2, -1, 0})}).values<int>(),
            (I{-3, -3, INT32_MIN, 0}));
  EXPECT_EQ(run("mod", {i32({4}, {-7, 7, -7, 7}), i32({4}, {3, -3, -3, 3})}).values<int>(),
            (I{2, -2, -1, 1}));
  EXPECT_EQ(run("fmod", {i32({2}, {-7, 7}), i32({2}, {3, -3})}).values<int>(), (I{-1, 1}));
  EXPECT_EQ(run("add", {i32({1}, {INT32_MAX}), i32({1}, {1})}).values<int>(), (I{INT32_MIN}));
  EXPECT_EQ(run("shift_left", {u8({2}, {129, 1}), u8({2}, {1, 8})}).values<uint8_t>(),
            (std::vector<uint8_t>{2, 0}));
  EXPECT_EQ(run("mul", {i64({1}, {65536}), i64({1}, {65536})}).values<int64_t>(),
            (std::vector<int64_t>{int64_t{1} << 32}));
}

TEST(Pointwise, NanPassesThroughMinAndMax) {
  const auto a = f32({2}, {kNan, 1}), b = f32({2}, {1, kNan});
  for (const char* fn : {"min", "max"}) {
    for (float value : run(fn, {a, b}).values<float>()) EXPECT_TRUE(std::isnan(value)) << fn;
  }
  EXPECT_EQ(run("less", {a, b}).values<uint8_t>(), (std::vector<uint8_t>{0, 0}));
}

TEST(Pointwise, RoundsTiesToEven) {
  EXPECT_EQ(run("round", {f32({5}, {0.5F, 1.5F, 2.5F, -0.5F, -1.5F})}).values<float>(),
            (F{0, 2, 2, -0.0F, -2}));
}

TEST(Pointwise, PowTakesOtherExponentTypes) {
  EXPECT_EQ(run("pow", {f32({3}, {-2, 0, 3}), i32({3}, {3, 0, -1})}).values<float>(),
            (F{-8, 1, 1.0F / 3}));
  EXPECT_EQ(run("pow", {i32({3}, {-2, 2, 1}), i32({3}, {3, -1, -5})}).values<int>(), (I{-8, 0, 1}));
  EXPECT_EQ(run("pow", {i32({1}, {4}), f32({1}, {0.5F})}).values<int>(), (I{2}));
}

TEST(Pointwise, HalfIsRoundedOnce) {
  // 2048 + 1 in f16: the exact sum ties to even.
  const auto one = tensor<uint16_t>(DType::kF16, {1}, {0x3C00});
  const auto big = tensor<uint16_t>(DType::kF16, {1}, {0x6800});
  EXPECT_EQ(run("add", {big, one}).values<uint16_t>(), (std::vector<uint16_t>{0x6800}));
}

TEST(Pointwise, WhereTakesEveryType) {
  const auto picked =
      run("where", {boolean({2}, {1, 0}), i64({1}, {int64_t{1} << 40}), i64({2}, {3, 4})});
  EXPECT_EQ(picked.values<int64_t>(), (std::vector<int64_t>{int64_t{1} << 40, 4}));
  const auto nibbles = tensor<uint8_t>(DType::kI4, {2}, {0x2F});
  const auto zeros = tensor<uint8_t>(DType::kI4, {2}, {0x00});
  EXPECT_EQ(run("where", {boolean({2}, {1, 0}), nibbles, zeros}).values<uint8_t>(),
            (std::vector<uint8_t>{0x0F}));
}

TEST(Pointwise, RejectsWhatDoesNotFit) {
  EXPECT_EQ(error_of("add", {ramp({2}), ramp({3})}), "add: shapes 2 and 3 do not broadcast");
  EXPECT_EQ(error_of("add", {ramp({2}), i32({2}, {1, 2})}),
            "add: input 1 is i32[2], expected type f32");
  EXPECT_EQ(error_of("exp", {i32({1}, {1})}), "exp: there is no such function for type i32");
}

}  // namespace
}  // namespace kiln::testing
