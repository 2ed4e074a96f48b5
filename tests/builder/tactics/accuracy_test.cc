#include "builder/tactics/accuracy.h"

#include <gtest/gtest.h>

#include "builder/ir/text.h"

namespace kiln {
namespace {

// Of a product whose operands and result are of this type, with a bias in f32.
AccuracyPolicy within(const std::string& product, DType output) {
  const auto graph = ir::parse_text(R"(graph {
  input %0 : )" + product + R"([4x8] "x"
  input %1 : )" + product + R"([8x8] "w"
  input %2 : f32[8] "bias"
  %3 = matmul{transpose_a=0, transpose_b=0}(%0, %1) : )" +
                                    product + R"([4x8] ; "product"
  %4 = cast{saturate=1, to="f32"}(%3) : f32[4x8] ; "cast"
  %5 = add(%4, %2) : f32[4x8] ; "sum"
  output %5 "y"
}
)");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? accuracy_within(*graph, output) : AccuracyPolicy();
}

// A sum that was rounded to f16 may lie a step of f16 from another's, whatever it is kept in later.
TEST(AccuracyWithin, TakesTheNarrowestTypeOnTheWay) {
  EXPECT_EQ(within("f16", DType::kF32).rtol, accuracy_for(DType::kF16).rtol);
  EXPECT_EQ(within("f32", DType::kF32).rtol, accuracy_for(DType::kF32).rtol);
  EXPECT_EQ(within("f32", DType::kF16).rtol, accuracy_for(DType::kF16).rtol);
}

// A product of 5.5 may be kept as 5.5 or 5.53125; with a residual of -5.52 that is 2 ulps of bf16
// or all of the result.
TEST(AccuracyWithin, LeavesRoomForAStepOfWhatIsRoundedOnTheWay) {
  EXPECT_EQ(within("bf16", DType::kF32).atol, 8.0 / 256);
  EXPECT_EQ(within("f16", DType::kF16).atol, 8.0 / 2048);
  EXPECT_EQ(within("f32", DType::kBF16).atol, accuracy_for(DType::kBF16).atol);
}

TEST(AccuracyWithin, HoldsIntegersToTheirBits) {
  EXPECT_EQ(within("f16", DType::kI64).rtol, 0);
  EXPECT_EQ(within("f16", DType::kI64).atol, 0);
}

}  // namespace
}  // namespace kiln
