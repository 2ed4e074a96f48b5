// The bounds of values that index, and that random inputs within them are accepted.
#include "builder/verify/index_bounds.h"

#include <gtest/gtest.h>

#include "builder/verify/random_inputs.h"

namespace kiln {
namespace {

struct IndexCase {
  const char* name;
  std::optional<int64_t> bound;  // of the graph's last input
  std::string body;
};

std::ostream& operator<<(std::ostream& out, const IndexCase& c) { return out << c.name; }

// A recurrent layer over x [3, 2, 4] with lengths [2].
std::string recurrent(const std::string& name, int gates, const std::string& attributes) {
  const auto wide = [&](int factor) { return std::to_string(gates * factor); };
  return "input %1 : f32[1x" + wide(5) + "x4] \"w\"\n  input %2 : f32[1x" + wide(5) +
         "x5] \"r\"\n  input %3 : f32[1x" + wide(10) +
         "] \"b\"\n  input %4 : f32[1x2x5] \"h\"\n  input %5 : i32[2] \"lengths\"\n  %6, %7 = " +
         name + attributes +
         "(%0, %1, %2, %3, %5, %4) : f32[3x1x2x5], f32[1x2x5] ; \"l\"\n  output %6 \"y\"";
}

const IndexCase kCases[] = {
    {"gather", 2, R"(input %1 : i64[5] "i"
  %2 = gather{axis=1}(%0, %1) : f32[3x5x4] ; "g"
  output %2 "y")"},
    {"gather_elements", 3, R"(input %1 : i32[3x2x4] "i"
  %2 = gather_elements{axis=0}(%0, %1) : f32[3x2x4] ; "g"
  output %2 "y")"},
    {"gather_nd", 2, R"(input %1 : i64[7x2] "i"
  %2 = gather_nd{batch_dims=0}(%0, %1) : f32[7x4] ; "g"
  output %2 "y")"},
    {"gather_nd_batch_dims", 4, R"(input %1 : i64[3x2x5x1] "i"
  %2 = gather_nd{batch_dims=2}(%0, %1) : f32[3x2x5] ; "g"
  output %2 "y")"},
    {"scatter_elements", 4, R"(input %1 : f32[1x1x6] "u"
  input %2 : i64[1x1x6] "i"
  %3 = scatter_elements{axis=2, reduction="none"}(%0, %2, %1) : f32[3x2x4] ; "s"
  output %3 "y")"},
    {"scatter_nd", 3, R"(input %1 : f32[5x2x4] "u"
  input %2 : i64[5x1] "i"
  %3 = scatter_nd{reduction="add"}(%0, %2, %1) : f32[3x2x4] ; "s"
  output %3 "y")"},
    {"reverse_sequence", 4, R"(input %1 : i64[2] "lengths"
  %2 = reverse_sequence{batch_axis=1, time_axis=0}(%0, %1) : f32[3x2x4] ; "r"
  output %2 "y")"},
    {"roi_align", 3, R"(input %1 : f32[5x4] "rois"
  input %2 : i64[5] "images"
  %3 = reshape{shape=[3, 2, 2, 2]}(%0) : f32[3x2x2x2] ; "x"
  %4 = roi_align{coordinate_transformation_mode="half_pixel", mode="avg", output_height=1, output_width=1, sampling_ratio=2, spatial_scale=1.0}(%3, %1, %2) : f32[5x2x1x1] ; "a"
  output %4 "y")"},
    {"max_unpool", 96, R"(input %1 : i64[3x2x4] "i"
  %2 = max_unpool{indexed_shape=[3, 2, 16], shape=[3, 2, 16]}(%0, %1) : f32[3x2x16] ; "u"
  output %2 "y")"},
    {"rnn", 4,
     recurrent(
         "rnn", 1,
         R"({activation_alpha=[0.0], activation_beta=[0.0], activations=["Tanh"], clip=inf, direction="forward"})")},
    {"gru", 4,
     recurrent(
         "gru", 3,
         R"({activation_alpha=[0.0, 0.0], activation_beta=[0.0, 0.0], activations=["Sigmoid", "Tanh"], clip=inf, direction="forward", linear_before_reset=0})")},

    {"through_casts_and_movement", 3, R"(input %1 : f32[1x5] "i"
  %2 = cast{saturate=1, to="i64"}(%1) : i64[1x5] ; "whole"
  %3 = reshape{shape=[5]}(%2) : i64[5] ; "flat"
  %4 = concat{axis=0}(%3, %3) : i64[10] ; "twice"
  %5 = gather{axis=0}(%0, %4) : f32[10x2x4] ; "g"
  output %5 "y")"},
    {"behind_an_offset", 2, R"(input %1 : i64[5] "i"
  const %2 : i64[] "offset" = 2
  %3 = add(%2, %1) : i64[5] ; "moved"
  %4 = gather{axis=2}(%0, %3) : f32[3x2x5] ; "g"
  output %4 "y")"},
    {"behind_a_stride", 2, R"(input %1 : i64[5] "i"
  const %2 : i64[] "stride" = 3
  %3 = mul(%1, %2) : i64[5] ; "moved"
  %4 = gather{axis=2}(%0, %3) : f32[3x2x5] ; "g"
  output %4 "y")"},
    {"an_offset_past_the_end_leaves_zero", 1, R"(input %1 : i64[5] "i"
  const %2 : i64[] "offset" = 3
  %3 = add(%2, %1) : i64[5] ; "moved"
  %4 = gather{axis=2}(%0, %3) : f32[3x2x5] ; "g"
  output %4 "y")"},
    {"the_smallest_counts", 2, R"(input %1 : i64[5] "i"
  %2 = gather{axis=0}(%0, %1) : f32[5x2x4] ; "g"
  %3 = gather{axis=1}(%0, %1) : f32[3x5x4] ; "h"
  output %2 "y"
  output %3 "z")"},
    {"inside_a_branch", 3, R"(input %1 : bool[] "c"
  input %2 : i64[5] "i"
  %3 = if(%1, %0, %2) : f32[5x2x4] "y" ; "if" {
    input %0 : f32[3x2x4] "x"
    input %1 : i64[5] "i"
    %2 = gather{axis=0}(%0, %1) : f32[5x2x4] ; "g"
    output %2 "y"
  } {
    input %0 : f32[3x2x4] "x"
    input %1 : i64[5] "i"
    const %2 : f32[5x2x4] "zero" = splat 0
    output %2 "y"
  }
  output %3 "y")"},
    {"counting_only", std::nullopt, R"(input %1 : i64[5] "i"
  const %2 : i64[5] "range" = 0, 1, 2, 3, 4
  %3 = equal(%1, %2) : bool[5] ; "mask"
  output %3 "y")"},
};

class IndexBoundsCase : public testing::TestWithParam<IndexCase> {};

TEST_P(IndexBoundsCase, AreWhatTheOperationAccepts) {
  const auto graph =
      ir::parse_text("graph {\n  input %0 : f32[3x2x4] \"x\"\n  " + GetParam().body + "\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(index_bounds(*graph).back(), GetParam().bound);
  EXPECT_EQ(index_bounds(*graph).front(), std::nullopt);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto ran = run_reference(*graph, random_inputs(*graph, seed));
    // An offset that no index survives is the model's fault.
    const bool hopeless = GetParam().bound == 1;
    ASSERT_TRUE(ran.ok() || hopeless) << ran.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Operands, IndexBoundsCase, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// The body of `depth` Ifs within each other, a gather in the innermost.
std::string nested(int depth) {
  const std::string inputs =
      "input %0 : f32[3x2x4] \"x\"\ninput %1 : bool[] \"c\"\ninput %2 : i64[5] \"i\"\n";
  if (depth == 0) {
    return inputs + "%3 = gather{axis=0}(%0, %2) : f32[5x2x4] ; \"g\"\noutput %3 \"y\"\n";
  }
  return inputs + "%3 = if(%1, %0, %1, %2) : f32[5x2x4] \"y\" ; \"if\" {\n" + nested(depth - 1) +
         "} {\n" + inputs + "const %3 : f32[5x2x4] \"zero\" = splat 0\noutput %3 \"y\"\n}\n" +
         "output %3 \"y\"\n";
}

// Looking at each body once for every input would take 3^30 looks.
TEST(IndexBounds, LookIntoNestedBodiesOnce) {
  const auto graph = ir::parse_text("graph {\n" + nested(30) + "}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(index_bounds(*graph).back(), 3);
}

}  // namespace
}  // namespace kiln
