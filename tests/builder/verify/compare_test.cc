#include "builder/verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

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

}  // namespace
}  // namespace kiln
