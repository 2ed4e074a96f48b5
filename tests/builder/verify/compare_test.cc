#include "builder/verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

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

}  // namespace
}  // namespace kiln
