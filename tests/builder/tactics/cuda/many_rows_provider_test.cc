// Which regions our kernel for many rows takes, and what they are lowered to; nothing runs.
#include "builder/tactics/cuda/many_rows_provider.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/builder/tactics/cuda/contraction_query.h"

namespace kiln {
namespace {

using Kind = LocalBuffer::Kind;
using test::gated;
using test::product;
using ManyRowsProvider = test::ContractionQuery;

// Bias last, so that the residual is not the last operand.
constexpr char kWithEpilogue[] = R"(graph {
  input %0 : f16[2x100x64] "x"
  input %1 : f16[40x64] "w"
  input %2 : f16[2x100x40] "residual"
  input %3 : f32[40] "bias"
  %4 = matmul{transpose_a=0, transpose_b=1}(%0, %1) : f16[2x100x40]
  %5 = cast{saturate=1, to="f32"}(%4) : f32[2x100x40]
  %6 = add(%5, %3) : f32[2x100x40]
  %7 = tanh(%6) : f32[2x100x40]
  %8 = cast{saturate=1, to="f16"}(%7) : f16[2x100x40]
  %9 = add(%8, %2) : f16[2x100x40]
  output %9 "y"
})";

TEST_F(ManyRowsProvider, OneLaunchComputesTheRegion) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  const TacticQuery region = query(kWithEpilogue);
  std::string why;
  const auto tactics = many_rows_candidates(region, why);
  ASSERT_FALSE(tactics.empty()) << why;
  for (const Tactic& tactic : tactics) {
    SCOPED_TRACE(tactic.key);
    const auto lowered = many_rows_lower(region, tactic);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    ASSERT_EQ(lowered->steps.size(), 1u);
    const auto& launch = std::get<LocalLaunch>(lowered->steps[0]);
    ASSERT_EQ(launch.inputs.size(), 4u);
    EXPECT_EQ(launch.inputs[0], (LocalBuffer{Kind::kInput, 0}));
    EXPECT_EQ(launch.inputs[1], (LocalBuffer{Kind::kInput, 1}));
    EXPECT_EQ(launch.outputs, (std::vector<LocalBuffer>{{Kind::kOutput, 0}}));
    EXPECT_TRUE(launch.programmatic);
    EXPECT_EQ(launch.block[0], 384u);
    // x, w, the residual wherever it is, y.
    ASSERT_EQ(launch.tensor_maps.size(), 4u);
    EXPECT_EQ(launch.tensor_maps[0].operand, 0u);
    EXPECT_EQ(launch.tensor_maps[1].operand, 1u);
    EXPECT_EQ(launch.inputs[launch.tensor_maps[2].operand], (LocalBuffer{Kind::kInput, 2}));
    EXPECT_EQ(launch.tensor_maps[3].operand, 4u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(launch.tensor_maps[i].columns, i < 2 ? 64u : 40u);
    }
  }
  EXPECT_FALSE(many_rows_lower(region, {"7x7.r7.c7x7"}).ok());
}

TEST_F(ManyRowsProvider, JoinsTheHalvesOfAProduct) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  const TacticQuery region = query(gated(100, "f16"));
  std::string why;
  const auto tactics = many_rows_candidates(region, why);
  ASSERT_FALSE(tactics.empty()) << why;
  const auto lowered = many_rows_lower(region, tactics.front());
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  ASSERT_EQ(lowered->steps.size(), 1u);
  const auto& launch = std::get<LocalLaunch>(lowered->steps[0]);
  EXPECT_EQ(launch.inputs.size(), 2u);
  ASSERT_EQ(launch.tensor_maps.size(), 4u);
  EXPECT_EQ(launch.tensor_maps[1].box_rows, 64u);
  EXPECT_EQ(launch.tensor_maps[3].operand, 2u);
  EXPECT_EQ(launch.tensor_maps[3].columns, 40u);
}

TEST_F(ManyRowsProvider, LeavesToALoopWhatItCannotMake) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  const TacticQuery region = query(gated(100, "i32"));
  std::string why;
  const auto tactics = many_rows_candidates(region, why);
  ASSERT_FALSE(tactics.empty()) << why;
  const auto lowered = many_rows_lower(region, tactics.front());
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  ASSERT_EQ(lowered->steps.size(), 2u);
  const auto& launch = std::get<LocalLaunch>(lowered->steps[0]);
  EXPECT_EQ(launch.outputs, (std::vector<LocalBuffer>{{Kind::kTemporary, 0}}));
  EXPECT_EQ(launch.tensor_maps[3].columns, 80u);
  ASSERT_EQ(lowered->temporaries.size(), 1u);
  EXPECT_EQ(to_string(lowered->temporaries[0]), "f16[100x80]");
  const auto& loop = std::get<HostCall>(lowered->steps[1]);
  EXPECT_EQ(loop.inputs, launch.outputs);
  EXPECT_EQ(loop.outputs, (std::vector<LocalBuffer>{{Kind::kOutput, 0}}));
}

TEST_F(ManyRowsProvider, MultipliesCodesAndQuantises) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  const TacticQuery region = query(R"(graph {
  input %0 : f8e4m3fn[100x64] "x"
  input %1 : f8e4m3fn[128x64] "w"
  input %2 : f32[128] "scales"
  %3 = matmul{transpose_a=0, transpose_b=1}(%0, %1) : f32[100x128]
  %4 = mul(%3, %2) : f32[100x128]
  %5 = cast{saturate=1, to="f8e4m3fn"}(%4) : f8e4m3fn[100x128]
  output %5 "y"
})");
  std::string why;
  const auto tactics = many_rows_candidates(region, why);
  ASSERT_FALSE(tactics.empty()) << why;
  EXPECT_TRUE(
      std::ranges::any_of(tactics, [](const Tactic& t) { return t.key.ends_with(".steps"); }));
  for (const Tactic& tactic : tactics) {
    const auto lowered = many_rows_lower(region, tactic);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    ASSERT_EQ(lowered->steps.size(), 1u);
    const auto& launch = std::get<LocalLaunch>(lowered->steps[0]);
    EXPECT_EQ(launch.inputs.size(), 3u);
    EXPECT_EQ(launch.tensor_maps[3].columns, 128u);
  }
}

TEST_F(ManyRowsProvider, SaysWhatItDoesNotTake) {
  const auto why = [&](const std::string& text) { return refusal(many_rows_candidates, text); };
  EXPECT_EQ(why(product("f16[64x64]", "f16[64x8]", "f16[64x8]", 0, 0)),
            "columns of the right side are not stored one after the other");
  EXPECT_EQ(why(product("f16[4x64x64]", "f16[4x8x64]", "f16[4x64x8]")),
            "the product is one of a batch");
  EXPECT_EQ(why(product("f16[64x12]", "f16[8x12]", "f16[64x8]")),
            "rows of 12 elements do not begin on 16-byte boundaries");
  EXPECT_EQ(why(product("f16[64x64]", "f16[7x64]", "f16[64x7]")),
            "rows of 7 elements do not begin on 16-byte boundaries");
  EXPECT_EQ(why(product("f16[8x64]", "f16[8x64]", "f16[8x8]")),
            "the product has 8 rows, 9 or more expected");
  EXPECT_EQ(why(product("f32[64x64]", "f32[8x64]", "f32[64x8]")),
            "the operands are f32, f16, bf16 or f8e4m3fn expected");
  device_.compute_capability = 89;
  EXPECT_EQ(why(product("f16[64x64]", "f16[8x64]", "f16[64x8]")),
            "the GPU has compute capability 8.9, 9.0 expected");
}

}  // namespace
}  // namespace kiln
