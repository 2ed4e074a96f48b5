#include "builder/precision/hold_quality.h"

#include <gtest/gtest.h>

#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "builder/verify/compare.h"
#include "tests/builder/random_tensors.h"

namespace kiln::precision {
namespace {

// Two branches. In "cancels" nearly equal weights of 100 leave differences of 1 in 400, which
// bf16's 8 bits lose; "robust" is a plain product.
constexpr char kBranches[] = R"(graph {
  input %0 : f32[4x2] "x"
  const %1 : f32[2x2] "w" = 100.25, 100, -100, -100.25
  const %2 : f32[2x2] "v" = 0.5, 0.25, -0.75, 1
  const %3 : f32[2x2] "ones" = 1, 1, 1, 1
  %4 = matmul{transpose_a=0, transpose_b=0}(%0, %3) : f32[4x2] ; "same"
  %5 = matmul{transpose_a=0, transpose_b=0}(%4, %1) : f32[4x2] ; "cancels"
  %6 = matmul{transpose_a=0, transpose_b=0}(%0, %2) : f32[4x2] ; "robust"
  output %5 "y"
  output %6 "z"
})";

struct Case {
  ir::Graph model, regions;
  std::vector<Probe> probes;
};

Case make_case(const char* text) {
  Case made{ir::parse_text(text).value(), {}, {}};
  made.regions = made.model;
  PassContext context;
  EXPECT_TRUE(run_passes(made.regions, default_pipeline(), context).ok());
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    auto inputs = test::random_inputs(made.model, seed);
    auto outputs = run_reference(made.model, inputs).value();
    made.probes.push_back({std::move(inputs), std::move(outputs)});
  }
  return made;
}

Result<HeldQuality> hold(const Case& made, const QualityGoal& goal) {
  DamageMeter meter(made.regions, goal.narrow, DType::kF32, made.probes, {});
  return hold_quality(made.regions, goal, meter, {});
}

TEST(HoldQuality, KeepsWhatCancelsAndNoMore) {
  const Case made = make_case(kBranches);
  const auto held = hold(made, {.narrow = DType::kBF16});
  ASSERT_TRUE(held.ok()) << held.error().message;
  ASSERT_TRUE(held->regions.contains("cancels"));
  EXPECT_NE(held->regions.at("cancels").keep, "");
  EXPECT_GT(held->regions.at("cancels").damage, 5e-4);
  EXPECT_EQ(held->regions.at("robust").keep, "");
  EXPECT_LT(held->regions.at("robust").damage, 5e-4);
  EXPECT_NE(held->note, "");
  // The pass does as it is told, and the outputs keep their direction on other inputs.
  ir::Graph graph = made.model;
  PassContext context;
  context.options.precision = Precision::kBf16;
  context.options.quality = held->regions;
  ASSERT_TRUE(run_passes(graph, default_pipeline(), context).ok());
  const auto inputs = test::random_inputs(made.model, 9);
  const auto want = run_reference(made.model, inputs).value();
  const auto got = run_reference(graph, inputs).value();
  for (size_t i = 0; i < want.size(); ++i) EXPECT_GE(cosine_of(got[i], want[i]), 0.999);
  for (const PrecisionDecision& decision : context.precision) {
    if (decision.region == "cancels") {
      EXPECT_EQ(decision.realised, DType::kF32);
      EXPECT_EQ(decision.reason, held->regions.at("cancels").keep);
    }
    if (decision.region == "robust") {
      EXPECT_EQ(decision.realised, DType::kBF16);
    }
  }
}

TEST(HoldQuality, AllStayNarrowWhereThatHolds) {
  const auto held = hold(make_case(kBranches), {.narrow = DType::kF16});
  ASSERT_TRUE(held.ok()) << held.error().message;
  EXPECT_TRUE(held->regions.empty());
  EXPECT_EQ(held->note, "");
}

TEST(HoldQuality, RefusesWhatF32CannotHoldEither) {
  Case made = make_case(kBranches);
  for (Probe& probe : made.probes) std::swap(probe.outputs[0], probe.outputs[1]);
  const auto held = hold(made, {.narrow = DType::kBF16});
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().code, ErrorCode::kVerification);
  EXPECT_NE(held.error().message.find("bf16 does not hold a cosine of 0.9990"), std::string::npos)
      << held.error().message;
  EXPECT_NE(held.error().message.find("--fp32"), std::string::npos);
}

}  // namespace
}  // namespace kiln::precision
