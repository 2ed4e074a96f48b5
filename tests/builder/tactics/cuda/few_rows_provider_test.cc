// Which regions our kernel for few rows takes, and what they are lowered to; nothing runs.
#include "builder/tactics/cuda/few_rows_provider.h"

#include <gtest/gtest.h>

#include "tests/builder/tactics/cuda/contraction_query.h"

namespace kiln {
namespace {

using Kind = LocalBuffer::Kind;

using test::product;
using FewRowsProvider = test::ContractionQuery;

// Residual first, so that the order of the operands shows.
constexpr char kWithEpilogue[] = R"(graph {
  input %0 : f16[2x1x64] "x"
  input %1 : f16[40x64] "w"
  input %2 : f16[2x1x40] "residual"
  input %3 : f32[40] "bias"
  %4 = matmul{transpose_a=0, transpose_b=1}(%0, %1) : f16[2x1x40]
  %5 = cast{saturate=1, to="f32"}(%4) : f32[2x1x40]
  %6 = add(%5, %3) : f32[2x1x40]
  %7 = tanh(%6) : f32[2x1x40]
  %8 = cast{saturate=1, to="f16"}(%7) : f16[2x1x40]
  %9 = add(%8, %2) : f16[2x1x40]
  output %9 "y"
})";

TEST_F(FewRowsProvider, OneLaunchComputesTheRegion) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  const TacticQuery region = query(kWithEpilogue);
  std::string why;
  const auto tactics = few_rows_candidates(region, why);
  ASSERT_FALSE(tactics.empty()) << why;
  for (const Tactic& tactic : tactics) {
    const auto lowered = few_rows_lower(region, tactic);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    ASSERT_EQ(lowered->steps.size(), 1u);
    const auto& launch = std::get<LocalLaunch>(lowered->steps[0]);
    ASSERT_EQ(launch.inputs.size(), 4u);
    EXPECT_EQ(launch.inputs[0], (LocalBuffer{Kind::kInput, 0}));
    EXPECT_EQ(launch.inputs[1], (LocalBuffer{Kind::kInput, 1}));
    // The others as the loop behind the product has them, which is free to choose.
    EXPECT_NE(launch.inputs[2], launch.inputs[3]);
    EXPECT_EQ(launch.outputs, (std::vector<LocalBuffer>{{Kind::kOutput, 0}}));
    EXPECT_TRUE(launch.programmatic);
    // As many as fit, and as many of the next kernel, fill the 228 KB of a multiprocessor, 1 of
    // them the driver's in each block.
    const uint32_t block = launch.shared_bytes + 1024, most = (228 << 10) / block;
    EXPECT_EQ(most % 2, 0u) << tactic.key;
    EXPECT_NE(tactic.key.find(".b" + std::to_string(most / 2)), std::string::npos) << tactic.key;
  }
  EXPECT_FALSE(few_rows_lower(region, {"g9.s9.w9.r9.b9"}).ok());
}

TEST_F(FewRowsProvider, JoinsTheHalvesOfAProduct) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  for (const std::string type : {"f16", "f32"}) {
    const TacticQuery region = query(test::gated(2, type));
    std::string why;
    const auto tactics = few_rows_candidates(region, why);
    ASSERT_FALSE(tactics.empty()) << why;
    for (const Tactic& tactic : tactics) {
      const auto lowered = few_rows_lower(region, tactic);
      ASSERT_TRUE(lowered.ok()) << lowered.error().message;
      ASSERT_EQ(lowered->steps.size(), 1u);
      const auto& launch = std::get<LocalLaunch>(lowered->steps[0]);
      EXPECT_EQ(launch.inputs.size(), 2u);
      EXPECT_EQ(launch.outputs, (std::vector<LocalBuffer>{{Kind::kOutput, 0}}));
    }
  }
}

TEST_F(FewRowsProvider, TakesPlainProductsOfEveryType) {
  for (const std::string t : {"f16", "bf16", "f32"}) {
    std::string why;
    const auto region = query(product(t + "[3x64]", t + "[7x64]", t + "[3x7]"));
    EXPECT_FALSE(few_rows_candidates(region, why).empty()) << t << ": " << why;
  }
}

TEST_F(FewRowsProvider, TakesEightBitsWithScalesBehind) {
  const std::string text = R"(graph {
  input %0 : f8e4m3fn[3x64] "x"
  input %1 : f8e4m3fn[16x64] "w"
  input %2 : f32[16] "scales"
  %3 = matmul{transpose_a=0, transpose_b=1}(%0, %1) : f32[3x16]
  %4 = mul(%3, %2) : f32[3x16]
  %5 = cast{saturate=1, to="f8e4m3fn"}(%4) : f8e4m3fn[3x16]
  output %5 "y"
})";
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  const TacticQuery region = query(text);
  std::string why;
  const auto tactics = few_rows_candidates(region, why);
  ASSERT_FALSE(tactics.empty()) << why;
  const auto lowered = few_rows_lower(region, tactics.front());
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  EXPECT_EQ(lowered->steps.size(), 1u);
  device_.compute_capability = 80;
  EXPECT_EQ(refusal(few_rows_candidates, text), "the GPU's tensor cores take no f8e4m3fn");
}

TEST_F(FewRowsProvider, SaysWhatItDoesNotTake) {
  EXPECT_EQ(refusal(few_rows_candidates, product("f16[3x64]", "f16[64x8]", "f16[3x8]", 0, 0)),
            "columns of the right side are not stored one after the other");
  EXPECT_EQ(refusal(few_rows_candidates, product("f16[64x3]", "f16[8x64]", "f16[3x8]", 1, 1)),
            "rows of the left side lie apart");
  EXPECT_EQ(refusal(few_rows_candidates, product("f16[4x3x64]", "f16[4x8x64]", "f16[4x3x8]")),
            "the product is one of a batch");
  EXPECT_EQ(refusal(few_rows_candidates, product("f16[3x13]", "f16[8x13]", "f16[3x8]")),
            "rows of 13 elements do not begin on 16-byte boundaries");
  EXPECT_EQ(refusal(few_rows_candidates, product("f16[300x64]", "f16[8x64]", "f16[300x8]")),
            "the product has 300 rows, up to 32 expected");
  EXPECT_EQ(refusal(few_rows_candidates, product("f64[3x64]", "f64[8x64]", "f64[3x8]")),
            "the operands are f64, f16, bf16, f8e4m3fn or f32 expected");
}

}  // namespace
}  // namespace kiln
