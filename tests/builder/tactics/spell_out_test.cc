// Operations spelled out in loops against the plain kernels, which the operation tests tie to ONNX.
#include "builder/tactics/spell_out/spell_out.h"

#include <gtest/gtest.h>

#include "builder/tactics/lower_grouped.h"
#include "builder/verify/compare.h"
#include "builder/verify/random_inputs.h"

namespace kiln {
namespace {

struct Case {
  const char* name;
  const char* inputs;     // lines of the graph's text
  const char* operation;  // with its operands
};

const Case kCases[] = {
    {"MaxPool", "input %0 : f32[2x3x9x8] \"x\"",
     "max_pool{ceil_mode=0, dilations=[1, 1], kernel_shape=[3, 3], pads=[1, 1, 1, 1], "
     "storage_order=0, strides=[2, 2], with_indices=0}(%0)"},
    {"MaxPoolCeil", "input %0 : f32[1x2x8x7] \"x\"",
     "max_pool{ceil_mode=1, dilations=[2, 1], kernel_shape=[2, 3], pads=[0, 0, 0, 0], "
     "storage_order=0, strides=[2, 2], with_indices=0}(%0)"},
    {"MaxPoolBytes", "input %0 : u8[1x2x6x6] \"x\"",
     "max_pool{ceil_mode=0, dilations=[1, 1], kernel_shape=[2, 2], pads=[1, 0, 0, 1], "
     "storage_order=0, strides=[1, 1], with_indices=0}(%0)"},
    {"AveragePool", "input %0 : f32[2x3x9x8] \"x\"",
     "average_pool{ceil_mode=0, count_include_pad=0, dilations=[1, 1], kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1], strides=[2, 2]}(%0)"},
    {"AveragePoolCeil", "input %0 : f32[1x2x8x7] \"x\"",
     "average_pool{ceil_mode=1, count_include_pad=1, dilations=[1, 1], kernel_shape=[3, 2], "
     "pads=[1, 0, 1, 1], strides=[2, 2]}(%0)"},
    {"AveragePoolGlobal", "input %0 : f16[2x3x5x5] \"x\"",
     "average_pool{ceil_mode=0, count_include_pad=0, dilations=[1, 1], kernel_shape=[5, 5], "
     "pads=[0, 0, 0, 0], strides=[5, 5]}(%0)"},
    {"ResizeNearest", "input %0 : f32[1x2x4x5] \"x\"",
     "resize{antialias=0, coordinate_transformation_mode=\"asymmetric\", cubic_coeff_a=-0.75, "
     "exclude_outside=0, extrapolation_value=0.0, mode=\"nearest\", nearest_mode=\"floor\", "
     "roi=reals[], scales=[1.0, 1.0, 2.0, 3.0], sizes=[1, 2, 8, 15]}(%0)"},
    {"ResizeNearestDown", "input %0 : i32[1x2x7x5] \"x\"",
     "resize{antialias=0, coordinate_transformation_mode=\"half_pixel\", cubic_coeff_a=-0.75, "
     "exclude_outside=0, extrapolation_value=0.0, mode=\"nearest\", "
     "nearest_mode=\"round_prefer_floor\", roi=reals[], scales=[1.0, 1.0, 0.6, 1.5], "
     "sizes=[1, 2, 4, 7]}(%0)"},
    {"ResizeLinear", "input %0 : f32[1x2x4x5] \"x\"",
     "resize{antialias=0, coordinate_transformation_mode=\"half_pixel\", cubic_coeff_a=-0.75, "
     "exclude_outside=0, extrapolation_value=0.0, mode=\"linear\", nearest_mode=\"floor\", "
     "roi=reals[], scales=[1.0, 1.0, 2.0, 1.4], sizes=[1, 2, 8, 7]}(%0)"},
    {"ResizeCubic", "input %0 : f32[1x2x4x5] \"x\"",
     "resize{antialias=0, coordinate_transformation_mode=\"align_corners\", cubic_coeff_a=-0.75, "
     "exclude_outside=0, extrapolation_value=0.0, mode=\"cubic\", nearest_mode=\"floor\", "
     "roi=reals[], scales=[1.0, 1.0, 2.0, 2.0], sizes=[1, 2, 8, 10]}(%0)"},
    {"ArgMax", "input %0 : f32[3x7x2] \"x\"",
     "arg_max{axis=1, keepdims=1, select_last_index=0}(%0)"},
    {"ArgMinLast", "input %0 : i32[3x7x2] \"x\"",
     "arg_min{axis=1, keepdims=0, select_last_index=1}(%0)"},
    {"CumSum", "input %0 : f32[3x7x2] \"x\"", "cum_sum{axis=1, exclusive=0, reverse=0}(%0)"},
    {"CumSumBack", "input %0 : i64[3x7] \"x\"", "cum_sum{axis=1, exclusive=1, reverse=1}(%0)"},
    {"CumProd", "input %0 : f32[5x3] \"x\"", "cum_prod{axis=0, exclusive=1, reverse=0}(%0)"},
    {"GatherElements",
     "input %0 : f32[3x7x2] \"x\"\n  const %1 : i64[2x2x2] \"i\" = 0, 6, -1, 3, "
     "2, 2, -7, 5",
     "gather_elements{axis=1}(%0, %1)"},
    {"GatherNd", "input %0 : f32[3x4x2] \"x\"\n  const %1 : i64[3x2] \"i\" = 0, 1, -1, 3, 2, -4",
     "gather_nd{batch_dims=0}(%0, %1)"},
    {"GatherNdBatch", "input %0 : f32[3x4x2] \"x\"\n  const %1 : i64[3x1] \"i\" = 1, 3, -4",
     "gather_nd{batch_dims=1}(%0, %1)"},
    {"MaxPoolWide", "input %0 : i64[1x2x6x6] \"x\"",
     "max_pool{ceil_mode=0, dilations=[1, 1], kernel_shape=[2, 2], pads=[1, 0, 0, 1], "
     "storage_order=0, strides=[1, 1], with_indices=0}(%0)"},
    {"ScatterElements",
     "input %0 : f32[3x5x2] \"x\"\n  const %1 : i64[2x3x1] \"i\" = 0, 4, -1, 1, 0, 1\n  "
     "input %2 : f32[2x3x1] \"u\"",
     "scatter_elements{axis=1, reduction=\"none\"}(%0, %1, %2)"},
    {"ScatterElementsBool",
     "input %0 : bool[4] \"x\"\n  const %1 : i32[3] \"i\" = 2, -1, 2\n  "
     "input %2 : bool[3] \"u\"",
     "scatter_elements{axis=0, reduction=\"none\"}(%0, %1, %2)"},
    {"ScatterElementsAdd",
     "input %0 : f32[4x2] \"x\"\n  const %1 : i64[3x2] \"i\" = 0, 1, 0, -2, 3, 1\n  "
     "input %2 : f32[3x2] \"u\"",
     "scatter_elements{axis=0, reduction=\"add\"}(%0, %1, %2)"},
    {"ScatterElementsMin",
     "input %0 : i64[4x2] \"x\"\n  const %1 : i64[3x2] \"i\" = 0, 1, 0, -2, 3, 1\n  "
     "input %2 : i64[3x2] \"u\"",
     "scatter_elements{axis=0, reduction=\"min\"}(%0, %1, %2)"},
    {"ScatterNd",
     "input %0 : f16[3x4x2] \"x\"\n  const %1 : i64[4x2] \"i\" = 0, 1, -1, 3, 2, -4, 0, 1\n  "
     "input %2 : f16[4x2] \"u\"",
     "scatter_nd{reduction=\"none\"}(%0, %1, %2)"},
    {"ScatterNdWhole",
     "input %0 : i32[5] \"x\"\n  const %1 : i64[2x2x1] \"i\" = 0, 3, 3, -1\n  "
     "input %2 : i32[2x2] \"u\"",
     "scatter_nd{reduction=\"none\"}(%0, %1, %2)"},
    {"ScatterNdMul",
     "input %0 : f16[4x3] \"x\"\n  const %1 : i64[3x1] \"i\" = 1, 1, -1\n  "
     "input %2 : f16[3x3] \"u\"",
     "scatter_nd{reduction=\"mul\"}(%0, %1, %2)"},
    {"ScatterNdMax",
     "input %0 : u8[4x3] \"x\"\n  const %1 : i64[3x1] \"i\" = 1, 1, -1\n  "
     "input %2 : u8[3x3] \"u\"",
     "scatter_nd{reduction=\"max\"}(%0, %1, %2)"},
    {"MatMulInteger", "input %0 : i32[2x3x5] \"a\"\n  input %1 : i32[5x4] \"b\"",
     "matmul{transpose_a=0, transpose_b=0}(%0, %1)"},
    {"MatMulDouble", "input %0 : f64[2x5x3] \"a\"\n  input %1 : f64[3x1x4x5] \"b\"",
     "matmul{transpose_a=1, transpose_b=1}(%0, %1)"},
    {"MatMulHalf", "input %0 : f16[3x40] \"a\"\n  input %1 : f16[40x4] \"b\"",
     "matmul{transpose_a=0, transpose_b=0}(%0, %1)"},
    {"ConvInteger", "input %0 : i32[2x3x7x6] \"x\"\n  input %1 : i32[4x3x3x2] \"w\"",
     "conv{dilations=[1, 2], groups=1, pads_begin=[1, 0], pads_end=[1, 2], strides=[2, 1]}"
     "(%0, %1)"},
    {"ConvGroups",
     "input %0 : f32[1x4x5] \"x\"\n  input %1 : f32[6x2x3] \"w\"\n  input %2 : f32[6] \"b\"",
     "conv{dilations=[1], groups=2, pads_begin=[1], pads_end=[1], strides=[1]}(%0, %1, %2)"},
    {"ConvCropped", "input %0 : f64[1x2x7x6] \"x\"\n  input %1 : f64[4x2x2x2] \"w\"",
     "conv{dilations=[1, 1], groups=1, pads_begin=[-1, 0], pads_end=[1, -2], strides=[1, 1]}"
     "(%0, %1)"},
    {"ConvFourDims", "input %0 : f32[1x2x3x3x3x3] \"x\"\n  input %1 : f32[2x2x2x2x2x2] \"w\"",
     "conv{dilations=[1, 1, 1, 1], groups=1, pads_begin=[0, 0, 0, 1], pads_end=[0, 0, 0, 0], "
     "strides=[1, 1, 1, 2]}(%0, %1)"},
    {"ConvTranspose",
     "input %0 : f32[2x4x3x5] \"x\"\n  input %1 : f32[4x3x3x2] \"w\"\n  "
     "input %2 : f32[3] \"b\"",
     "conv_transpose{dilations=[1, 1], groups=1, output_padding=[1, 0], pads_begin=[1, 0], "
     "pads_end=[1, 0], strides=[2, 3]}(%0, %1, %2)"},
    {"ConvTransposeGroups", "input %0 : f32[1x4x5] \"x\"\n  input %1 : f32[4x3x3] \"w\"",
     "conv_transpose{dilations=[2], groups=2, output_padding=[0], pads_begin=[3], pads_end=[5], "
     "strides=[2]}(%0, %1)"},
};

class SpellOut : public ::testing::TestWithParam<Case> {};

// The operation's types are found by asking for them: its line in the text needs the result's.
Result<ir::Graph> body_of(const Case& test) {
  const std::string head = std::string("graph {\n  ") + test.inputs + "\n";
  KILN_ASSIGN_OR_RETURN(ir::Graph body, ir::parse_text(head + "}\n"));
  std::string_view text = test.operation;
  KILN_ASSIGN_OR_RETURN(const Operation operation, parse_operation(text));
  KILN_ASSIGN_OR_RETURN(const ir::Op op, ir::op_from_operation(operation));
  std::vector<ir::ValueId> operands;
  for (uint32_t i = 0; i < body.value_count(); ++i) operands.push_back(ir::ValueId{i});
  KILN_ASSIGN_OR_RETURN(const ir::NodeId node, body.add_node("n", {}, op, operands));
  for (ir::ValueId id : body.node(node).outputs) body.mark_output(id);
  return body;
}

TEST_P(SpellOut, GivesWhatTheKernelGives) {
  const auto body = body_of(GetParam());
  ASSERT_TRUE(body.ok()) << body.error().message;
  const auto loops = spell_out_operations(*body, Anchors::kSpellOut);
  ASSERT_TRUE(loops.ok()) << loops.error().message;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto inputs = random_inputs(*body, seed);
    const auto want = run_reference(*body, inputs), got = run_reference(*loops, inputs);
    ASSERT_TRUE(want.ok() && got.ok());
    for (size_t i = 0; i < want->size(); ++i) {
      const auto result = compare((*want)[i].type, (*got)[i].bytes.data(), (*want)[i].bytes.data(),
                                  accuracy_for((*want)[i].type.dtype));
      EXPECT_TRUE(result.passed) << result.worst;
    }
  }
}

TEST_P(SpellOut, BecomesLoopsAlone) {
  const auto body = body_of(GetParam());
  ASSERT_TRUE(body.ok());
  const auto loops = spell_out_operations(*body, Anchors::kSpellOut);
  ASSERT_TRUE(loops.ok());
  const auto lowered = lower_grouped(*loops);
  ASSERT_TRUE(lowered.ok());
  for (const LocalStep& step : lowered->steps) {
    const auto* call = std::get_if<HostCall>(&step);
    if (call != nullptr) {
      EXPECT_EQ(call->operation.name, "loop");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, SpellOut, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SpellOutTopK, GivesWhatTheKernelGivesWithNanAndTies) {
  for (const char* largest : {"1", "0"}) {
    const auto body = ir::parse_text(std::string(R"(graph {
  input %0 : f32[1] "unused"
  const %1 : f32[2x5] "x" = 1, nan, 3, 1, 3, -inf, 2, inf, nan, 2
  %2, %3 = top_k{axis=1, k=3, largest=)") +
                                     largest +
                                     R"(, sorted=1}(%1) : f32[2x3], i64[2x3] ; "n"
  output %2 "v"
  output %3 "i"
})");
    ASSERT_TRUE(body.ok()) << body.error().message;
    const auto loops = spell_out_operations(*body);
    ASSERT_TRUE(loops.ok()) << loops.error().message;
    const auto inputs = random_inputs(*body, 1);
    const auto want = run_reference(*body, inputs), got = run_reference(*loops, inputs);
    ASSERT_TRUE(want.ok() && got.ok());
    for (size_t i = 0; i < 2; ++i) {
      const auto result = compare((*want)[i].type, (*got)[i].bytes.data(), (*want)[i].bytes.data(),
                                  AccuracyPolicy{0, 0});
      EXPECT_TRUE(result.passed) << result.worst;
    }
  }
}

TEST(SpellOutOperations, RefusesWhatHasNoFormWithTheReason) {
  const auto body = ir::parse_text(R"(graph {
  input %0 : f32[2x2] "x"
  %1 = det{}(%0) : f32[] ; "n"
  output %1 "y"
})");
  ASSERT_TRUE(body.ok()) << body.error().message;
  const auto loops = spell_out_operations(*body);
  ASSERT_FALSE(loops.ok());
  EXPECT_EQ(loops.error().message, "'det' has no form as loops");
}

}  // namespace
}  // namespace kiln
