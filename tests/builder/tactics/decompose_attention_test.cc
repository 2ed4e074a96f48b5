#include "builder/tactics/decompose_attention.h"

#include <gtest/gtest.h>

#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

ir::Graph parse(const std::string& text) {
  auto graph = ir::parse_text(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return std::move(graph).value();
}

// One query row of four keys whose values are 1, 2, 4 and 8: the result tells the weights.
std::vector<double> attend(const std::string& mask, bool masked_row_zero) {
  const ir::Graph body = parse(R"(graph {
  input %0 : f32[1x1x2x1] "q"
  const %1 : f32[1x1x4x1] "k" = splat 1
  const %2 : f32[1x1x4x1] "v" = 1, 2, 4, 8
  const %3 : )" + mask + R"(
  %4 = attention{causal=0, masked_row_zero=)" +
                               std::to_string(masked_row_zero) +
                               R"(, scale=1.0, softcap=0.0}(%0, %1, %2, %3) : f32[1x1x2x1] ; "a"
  output %4 "y"
})");
  const auto spelled_out = decompose_attention(body);
  EXPECT_TRUE(spelled_out.ok());
  const auto found = run_reference(*spelled_out, test::random_inputs(body, 1));
  EXPECT_TRUE(found.ok());
  return test::to_doubles(found.value()[0]);
}

TEST(DecomposeAttention, EmptyRowsAreZeroWhereThatIsAsked) {
  const std::string mask = R"(bool[2x4] "m" = 0, 0, 0, 0, 1, 0, 0, 1)";
  EXPECT_EQ(attend(mask, true), (std::vector<double>{0, 4.5}));
}

TEST(DecomposeAttention, EmptyRowsWeighAllKeysEquallyOtherwise) {
  const std::string mask = R"(bool[2x4] "m" = 0, 0, 0, 0, 1, 0, 0, 1)";
  EXPECT_EQ(attend(mask, false), (std::vector<double>{3.75, 4.5}));
}

TEST(DecomposeAttention, AdditiveMasksOfMinusInfinityAreEmptyToo) {
  const std::string mask = R"(f32[2x4] "m" = -inf, -inf, -inf, -inf, 0, -inf, -inf, 0)";
  EXPECT_EQ(attend(mask, true), (std::vector<double>{0, 4.5}));
}

}  // namespace
}  // namespace kiln
