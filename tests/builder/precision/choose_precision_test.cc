#include "builder/precision/choose_precision.h"

#include <gtest/gtest.h>

#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "tests/builder/imported_model.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

// y = relu(x W + b) normalised by its maximum, and again through V.
constexpr char kTwoProducts[] = R"(graph {
  input %0 : f32[2x3] "x"
  const %1 : f32[3x3] "w" = 1, 2, 3, 4, 5, 6, 7, 8, 9
  const %2 : f32[3x2] "v" = 1, 2, 3, 4, 5, 6
  %3 = matmul{transpose_a=0, transpose_b=0}(%0, %1) : f32[2x3] ; "first"
  %4 = reduce{axes=[1], fn="max", keep_dims=1}(%3) : f32[2x1] ; "max"
  %5 = sub(%3, %4) : f32[2x3] ; "shifted"
  %6 = exp(%5) : f32[2x3] ; "exp"
  %7 = matmul{transpose_a=0, transpose_b=0}(%6, %2) : f32[2x2] ; "second"
  output %7 "y"
})";

struct Outcome {
  ir::Graph before, after;
  PassContext context;
};

Outcome run(const char* text, Precision precision, bool io_fp16 = false) {
  auto parsed = ir::parse_text(text);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  Outcome outcome{std::move(parsed).value(), {}, {}};
  outcome.after = outcome.before;
  outcome.context.options.precision = precision;
  outcome.context.options.io_fp16 = io_fp16;
  const auto result = run_passes(outcome.after, default_pipeline(), outcome.context);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return outcome;
}

const ir::Node& node_named(const ir::Graph& graph, const std::string& name) {
  for (ir::NodeId id : graph.topological_order()) {
    if (graph.node(id).name == name) return graph.node(id);
  }
  ADD_FAILURE() << "no node '" << name << "'";
  return graph.node(ir::NodeId{0});
}

TEST(ChoosePrecision, StoresNarrowBetweenRegionsAndKeepsTheInterface) {
  const Outcome outcome = run(kTwoProducts, Precision::kFp16);
  const ir::Graph& graph = outcome.after;
  EXPECT_EQ(graph.type(graph.inputs()[0]).dtype, DType::kF32);
  EXPECT_EQ(graph.type(graph.outputs()[0]).dtype, DType::kF32);
  const ir::Node& second = node_named(graph, "second");
  EXPECT_EQ(graph.type(second.inputs[0]).dtype, DType::kF16);
  EXPECT_EQ(graph.type(second.inputs[1]).dtype, DType::kF16);
  EXPECT_TRUE(graph.value(second.inputs[1]).constant);
}

TEST(ChoosePrecision, LoopsComputeInF32) {
  const Outcome outcome = run(kTwoProducts, Precision::kBf16);
  const ir::Node& loop = node_named(outcome.after, "exp");
  const auto& body = *std::get<ir::Region>(loop.op).body;
  for (ir::NodeId id : body.topological_order()) {
    const ir::Node& node = body.node(id);
    if (std::holds_alternative<ir::Cast>(node.op)) continue;
    EXPECT_EQ(body.type(node.inputs[0]).dtype, DType::kF32) << node.name;
  }
  EXPECT_EQ(outcome.after.type(loop.inputs[0]).dtype, DType::kBF16);
}

TEST(ChoosePrecision, InputsAndOutputsFollowIoFp16) {
  const Outcome outcome = run(kTwoProducts, Precision::kFp32, true);
  EXPECT_EQ(outcome.after.type(outcome.after.inputs()[0]).dtype, DType::kF16);
  EXPECT_EQ(outcome.after.type(outcome.after.outputs()[0]).dtype, DType::kF16);
  EXPECT_EQ(outcome.after.type(node_named(outcome.after, "second").inputs[1]).dtype, DType::kF32);
}

TEST(ChoosePrecision, Fp32ChangesNothingAndIsRecorded) {
  const Outcome outcome = run(kTwoProducts, Precision::kFp32);
  ASSERT_EQ(outcome.context.precision.size(), 3u);
  for (const auto& decision : outcome.context.precision) {
    EXPECT_EQ(decision.asked, DType::kF32);
    EXPECT_EQ(decision.realised, DType::kF32);
    EXPECT_EQ(decision.reason, "");
  }
}

TEST(ChoosePrecision, WeightsThatF16CannotHoldStayAndSayWhy) {
  constexpr char kLarge[] = R"(graph {
  input %0 : f32[2x2] "x"
  const %1 : f32[2x2] "w" = 70000, 1, 1, 1
  %2 = matmul{transpose_a=0, transpose_b=0}(%0, %1) : f32[2x2] ; "mm"
  output %2 "y"
})";
  const Outcome half = run(kLarge, Precision::kFp16);
  ASSERT_EQ(half.context.precision.size(), 1u);
  EXPECT_EQ(half.context.precision[0].asked, DType::kF16);
  EXPECT_EQ(half.context.precision[0].realised, DType::kF32);
  EXPECT_EQ(half.context.precision[0].reason, "constant 'w' holds 70000, over f16's 65504");
  const Outcome brain = run(kLarge, Precision::kBf16);
  EXPECT_EQ(brain.context.precision[0].realised, DType::kBF16);
}

// Convolution, pool, convolution, and a second pool whose result is the model's.
constexpr char kPools[] = R"(graph {
  input %0 : f32[1x2x4x4] "x"
  const %1 : f32[2x2x1x1] "w" = 1, 2, 3, 4
  %2 = conv{dilations=[1, 1], groups=1, pads_begin=[0, 0], pads_end=[0, 0], strides=[1, 1]}(%0, %1) : f32[1x2x4x4] ; "first"
  %3 = max_pool{ceil_mode=0, dilations=[1, 1], kernel_shape=[2, 2], pads=[0, 0, 0, 0], storage_order=0, strides=[1, 1], with_indices=0}(%2) : f32[1x2x3x3] ; "inner"
  %4 = conv{dilations=[1, 1], groups=1, pads_begin=[0, 0], pads_end=[0, 0], strides=[1, 1]}(%3, %1) : f32[1x2x3x3] ; "second"
  %5 = max_pool{ceil_mode=0, dilations=[1, 1], kernel_shape=[2, 2], pads=[0, 0, 0, 0], storage_order=0, strides=[1, 1], with_indices=0}(%4) : f32[1x2x2x2] ; "last"
  output %5 "y"
})";

TEST(ChoosePrecision, PoolsBetweenNarrowRegionsAreNarrow) {
  const Outcome outcome = run(kPools, Precision::kBf16);
  const ir::Node& inner = node_named(outcome.after, "inner");
  EXPECT_EQ(outcome.after.type(inner.inputs[0]).dtype, DType::kBF16);
  EXPECT_EQ(outcome.after.type(inner.outputs[0]).dtype, DType::kBF16);
  const ir::Node& last = node_named(outcome.after, "last");
  EXPECT_EQ(outcome.after.type(last.inputs[0]).dtype, DType::kF32);
  EXPECT_EQ(outcome.after.type(last.outputs[0]).dtype, DType::kF32);
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return aa == 0 && bb == 0 ? 1 : ab / std::sqrt(aa * bb);
}

class PrecisionModels : public testing::TestWithParam<std::string> {};

TEST_P(PrecisionModels, HalfPrecisionPointsTheSameWay) {
  const auto imported = test::import_tiny(GetParam(), 2);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const auto inputs = test::random_inputs(*imported, 5);
  const auto expected = run_reference(*imported, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const Precision precision : {Precision::kFp16, Precision::kBf16}) {
    ir::Graph graph = *imported;
    PassContext context;
    context.options.precision = precision;
    const auto run = run_passes(graph, default_pipeline(), context);
    ASSERT_TRUE(run.ok()) << run.error().message;
    const auto found = run_reference(graph, inputs);
    ASSERT_TRUE(found.ok()) << found.error().message;
    for (size_t i = 0; i < expected->size(); ++i) {
      EXPECT_GE(cosine(test::to_doubles((*expected)[i]), test::to_doubles((*found)[i])), 0.999);
    }
    int narrow = 0;
    for (const auto& decision : context.precision) narrow += decision.realised != DType::kF32;
    EXPECT_GT(narrow, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, PrecisionModels, testing::ValuesIn(test::tiny_model_names()),
                         test::parameter_name);

}  // namespace
}  // namespace kiln
