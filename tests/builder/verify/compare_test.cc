#include "builder/verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>

namespace kiln {
namespace {

HostTensor floats(std::vector<float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  HostTensor tensor;
  tensor.type = {DType::kF32, {static_cast<int64_t>(values.size())}};
  tensor.bytes = SharedBytes::take(std::move(bytes));
  return tensor;
}

TEST(CosineOf, CountsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_DOUBLE_EQ(cosine_of(floats({3, 4}), floats({4, 3})), 0.96);
  EXPECT_DOUBLE_EQ(cosine_of(floats({0, 0}), floats({0, 0})), 1);
  EXPECT_DOUBLE_EQ(cosine_of(floats({1, infinity}), floats({1, infinity})), 1);
  EXPECT_DOUBLE_EQ(cosine_of(floats({1, infinity}), floats({1, 70000})), 0);
  EXPECT_DOUBLE_EQ(cosine_of(floats({1, infinity}), floats({1, -infinity})), 0);
  EXPECT_DOUBLE_EQ(cosine_of(floats({1, nan}), floats({1, nan})), 1);
  EXPECT_DOUBLE_EQ(cosine_of(floats({1, nan}), floats({1, 2})), 0);
}

// As a tensor core reads it: the low 13 bits of 23 are ignored.
float as_tf32(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= 0xFFFFE000u;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

// 256 sums of 1024 products each, exact and of operands rounded to TF32.
TEST(Compare, TakesTf32ForF32OnlyWhereItWasAllowed) {
  std::minstd_rand random(7);
  std::normal_distribution<float> normal;
  std::vector<float> exact, rounded;
  for (int i = 0; i < 256; ++i) {
    double sum = 0, tf32 = 0;
    for (int k = 0; k < 1024; ++k) {
      const float a = normal(random), b = normal(random);
      sum += double{a} * b;
      tf32 += double{as_tf32(a)} * as_tf32(b);
    }
    exact.push_back(static_cast<float>(sum));
    rounded.push_back(static_cast<float>(tf32));
  }
  const HostTensor want = floats(exact), got = floats(rounded);
  const auto passes = [&](const HostTensor& found, bool tf32) {
    return compare(want.type, found.bytes.data(), want.bytes.data(),
                   accuracy_for(DType::kF32, tf32))
        .passed;
  };
  EXPECT_TRUE(passes(got, true));
  EXPECT_FALSE(passes(got, false));
  EXPECT_TRUE(passes(want, false));
  rounded[17] += 4;  // an eighth of the sums' deviation
  EXPECT_FALSE(passes(floats(rounded), true));
}

// Of 5000 rows of 1000, more than one thread's share: what is wrong in any place is found there.
TEST(Compare, FindsTheWorstElementOfManyRows) {
  constexpr size_t kRows = 5000, kColumns = 1000;
  std::minstd_rand random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(kRows * kColumns);
  for (float& value : values) value = normal(random);
  HostTensor want = floats(values);
  want.type.shape = {kRows, kColumns};
  const auto compared = [&](const std::vector<float>& found) {
    return compare(want.type, floats(found).bytes.data(), want.bytes.data(),
                   accuracy_for(DType::kF32));
  };
  EXPECT_TRUE(compared(values).passed);
  EXPECT_EQ(compared(values).rows, static_cast<int64_t>(kRows));
  EXPECT_EQ(compared(values).worst, "");
  EXPECT_EQ(compared(values).min_cosine, 1);
  for (const size_t at : {size_t{0}, size_t{2500999}, values.size() - 1}) {
    std::vector<float> wrong = values;
    wrong[at] += 10;
    wrong[at / 2] += 1e-5F;
    const Comparison result = compared(wrong);
    EXPECT_FALSE(result.passed);
    EXPECT_NEAR(result.max_abs_error, 10, 1e-3);
    EXPECT_LT(result.min_cosine, 0.999);
    EXPECT_TRUE(result.worst.starts_with("element " + std::to_string(at) + " is ")) << result.worst;
  }
  std::vector<float> lost = values;
  lost[4000000] = std::nanf("");
  EXPECT_FALSE(compared(lost).passed);
}

// 3 x 2 elements, each its own row's share of a half type.
TEST(Compare, ReadsHalfTypes) {
  for (const auto& [dtype, one, two] :
       {std::tuple{DType::kF16, uint16_t{0x3C00}, uint16_t{0x4000}},
        std::tuple{DType::kBF16, uint16_t{0x3F80}, uint16_t{0x4000}}}) {
    const TensorType type{dtype, {3, 2}};
    const std::vector<uint16_t> want = {one, two, one, one, two, two};
    std::vector<uint16_t> got = want;
    got[3] = two;
    const Comparison result =
        compare(type, reinterpret_cast<const std::byte*>(got.data()),
                reinterpret_cast<const std::byte*>(want.data()), accuracy_for(dtype));
    EXPECT_FALSE(result.passed);
    EXPECT_EQ(result.rows, 3);
    EXPECT_EQ(result.max_abs_error, 1);
    EXPECT_NEAR(result.min_cosine, 3 / std::sqrt(10.0), 1e-12);
    EXPECT_TRUE(result.worst.starts_with("element 3 is 2, expected 1 ")) << result.worst;
  }
}

}  // namespace
}  // namespace kiln
