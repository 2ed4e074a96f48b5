// Random inputs are what they are said to be, tensors that several generators fill among them.
#include "builder/verify/random_inputs.h"

#include <gtest/gtest.h>

#include <cstring>

namespace kiln {
namespace {

std::vector<float> normals(int64_t count, uint64_t seed) {
  ir::Graph graph;
  graph.mark_output(graph.add_input("x", {DType::kF32, {count}}));
  const auto inputs = random_inputs(graph, seed, {});
  std::vector<float> values(static_cast<size_t>(count));
  std::memcpy(values.data(), inputs[0].bytes.data(), inputs[0].bytes.size());
  return values;
}

TEST(RandomInputs, AreNormalThroughout) {
  constexpr int64_t kCount = 300'001, kPart = 50'000;
  const std::vector<float> values = normals(kCount, 3);
  for (int64_t from = 0; from + kPart <= kCount; from += kPart) {
    double sum = 0, squares = 0;
    for (int64_t i = from; i < from + kPart; ++i) {
      const double x = values[static_cast<size_t>(i)];
      sum += x;
      squares += x * x;
    }
    EXPECT_NEAR(sum / kPart, 0, 0.03) << from;
    EXPECT_NEAR(squares / kPart, 1, 0.05) << from;
  }
  EXPECT_NE(values.back(), 0);
}

TEST(RandomInputs, DoNotRepeatThemselves) {
  const std::vector<float> values = normals(1 << 17, 3);
  for (const size_t apart : {size_t{1} << 15, size_t{1} << 16}) {
    size_t same = 0;
    for (size_t i = 0; i < 1000; ++i) same += values[i] == values[i + apart] ? 1 : 0;
    EXPECT_LT(same, 10u) << apart;
  }
  EXPECT_EQ(normals(1 << 17, 3), values);
  EXPECT_NE(normals(1 << 17, 4), values);
}

}  // namespace
}  // namespace kiln
