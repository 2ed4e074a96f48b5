#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "builder/precision/retype_graph.h"

namespace kiln::precision {
namespace {

SharedBytes floats(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return SharedBytes::take(std::move(bytes));
}

struct OneConstant {
  ir::Graph graph;
  ir::ValueId id;
  explicit OneConstant(SharedBytes bytes)
      : id(graph.add_constant("c", {DType::kF32, {2}}, std::move(bytes))) {}
};

uint16_t first_of(const SharedBytes& bytes) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes.data(), sizeof bits);
  return bits;
}

TEST(ConvertedConstants, AreSharedByGraphsOfTheSameBytes) {
  const SharedBytes bytes = floats({1, 2});
  const OneConstant a(bytes), b(bytes), other(floats({1, 2}));
  ConvertedConstants constants;
  const auto first = constants.get(a.graph, a.id, DType::kF16);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first_of(*first), 0x3C00);
  EXPECT_EQ(constants.get(b.graph, b.id, DType::kF16)->data(), first->data());
  EXPECT_EQ(first_of(*constants.get(b.graph, b.id, DType::kBF16)), 0x3F80);
  EXPECT_NE(constants.get(other.graph, other.id, DType::kF16)->data(), first->data());
  EXPECT_EQ(constants.get(a.graph, a.id, DType::kF32)->data(), bytes.data());
}

// The bytes of a constant that is gone may come to lie where another's were.
TEST(ConvertedConstants, DoNotOutliveTheirSource) {
  ConvertedConstants constants;
  for (int i = 1; i <= 64; ++i) {
    const auto value = static_cast<float>(i);
    const OneConstant one(floats({value, 0}));
    const auto got = constants.get(one.graph, one.id, DType::kBF16);
    ASSERT_TRUE(got.ok());
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    ASSERT_EQ(first_of(*got), bits >> 16) << i;
  }
}

}  // namespace
}  // namespace kiln::precision
