// Which regions our kernel for depthwise convolutions takes, and what they are lowered to; nothing
// runs.
#include "builder/tactics/cuda/depthwise_provider.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/builder/random_tensors.h"
#include "tests/builder/tactics/cuda/contraction_query.h"

namespace kiln {
namespace {

using Kind = LocalBuffer::Kind;

class DepthwiseProvider : public test::ContractionQuery {
 protected:
  // Input 1 is a constant, if `constant`.
  TacticQuery query(const std::string& text, bool constant = true) {
    TacticQuery query = ContractionQuery::query(text, ir::Region::Kind::kConvolution);
    std::mt19937 random(3);
    weights_ = test::random_tensor(query.inputs[1], random);
    query.constants[1].reset();
    if (constant) query.constants[1] = weights_.bytes;
    return query;
  }

  std::string refusal(const std::string& text, bool constant = true) {
    std::string why;
    EXPECT_TRUE(depthwise_candidates(query(text, constant), why).empty());
    return why;
  }

  HostTensor weights_{};
};

// hardswish(conv + bias) of [2, 16, 6, 6], stored with channels last.
std::string region(const std::string& t, int groups, const std::string& w, int dilation = 1,
                   bool last = true) {
  const std::string extents = dilation == 1 ? "2x16x6x6" : "2x16x4x4";
  const std::string y = last ? (dilation == 1 ? "2x6x6x16" : "2x4x4x16") : extents;
  const std::string d = std::to_string(dilation);
  std::string text = "graph {\n  input %0 : " + t + "[2x6x6x16] \"x\"\n  input %1 : " + t + "[" +
                     w + "] \"w\"\n  input %2 : " + t + "[16] \"bias\"\n" +
                     "  const %3 : f32[] \"three\" = 3\n  const %4 : f32[] \"zero\" = 0\n" +
                     "  const %5 : f32[] \"six\" = 6\n";
  text += "  %6 = transpose{perm=[0, 3, 1, 2]}(%0) : " + t + "[2x16x6x6]\n";
  text += "  %7 = conv{dilations=[" + d + ", " + d + "], groups=" + std::to_string(groups) +
          ", pads_begin=[1, 1], pads_end=[1, 1], strides=[1, 1]}(%6, %1, %2) : " + t + "[" +
          extents + "]\n";
  const std::string wide = " : f32[" + extents + "]\n";
  text += "  %8 = cast{saturate=1, to=\"f32\"}(%7)" + wide + "  %9 = add(%8, %3)" + wide;
  text += "  %10 = max(%9, %4)" + wide + "  %11 = min(%10, %5)" + wide + "  %12 = div(%11, %5)" +
          wide + "  %13 = mul(%8, %12)" + wide;
  text += "  %14 = cast{saturate=1, to=\"" + t + "\"}(%13) : " + t + "[" + extents + "]\n";
  if (!last) return text + "  output %14 \"y\"\n}";
  return text + "  %15 = transpose{perm=[0, 2, 3, 1]}(%14) : " + t + "[" + y +
         "]\n  output %15 \"y\"\n}";
}

TEST_F(DepthwiseProvider, OneLaunchComputesTheRegion) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  for (const std::string t : {"f16", "bf16"}) {
    const TacticQuery one = query(region(t, 16, "16x1x3x3"));
    std::string why;
    const auto tactics = depthwise_candidates(one, why);
    ASSERT_FALSE(tactics.empty()) << why;
    const auto lowered = depthwise_lower(one, tactics.front());
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    ASSERT_EQ(lowered->steps.size(), 1u);
    const auto& launch = std::get<LocalLaunch>(lowered->steps[0]);
    EXPECT_EQ(launch.inputs, (std::vector<LocalBuffer>{
                                 {Kind::kInput, 0}, {Kind::kConstant, 0}, {Kind::kInput, 2}}));
    EXPECT_EQ(launch.outputs, (std::vector<LocalBuffer>{{Kind::kOutput, 0}}));
    EXPECT_TRUE(launch.programmatic);
    // The weights of a place of the window lie beside each other.
    ASSERT_EQ(lowered->constants.size(), 1u);
    EXPECT_EQ(lowered->constants[0].type.shape, (Shape{9, 16}));
    const auto was = test::to_doubles(weights_), is = test::to_doubles(lowered->constants[0]);
    for (size_t c = 0; c < 16; ++c) {
      for (size_t k = 0; k < 9; ++k) EXPECT_EQ(is[k * 16 + c], was[c * 9 + k]);
    }
  }
  EXPECT_FALSE(depthwise_lower(query(region("f16", 16, "16x1x3x3")), {"r99.b1"}).ok());
}

TEST_F(DepthwiseProvider, SaysWhatItDoesNotTake) {
  EXPECT_EQ(refusal(region("f16", 1, "16x16x3x3")), "channels are not convolved each by itself");
  EXPECT_EQ(refusal(region("f16", 8, "16x2x3x3")), "channels are not convolved each by itself");
  EXPECT_EQ(refusal(region("f32", 16, "16x1x3x3")), "the operands are f32, f16 or bf16 expected");
  EXPECT_EQ(refusal(region("f16", 16, "16x1x3x3", 2)), "the window has gaps");
  EXPECT_EQ(refusal(region("f16", 16, "16x1x3x3"), false), "its weights are computed");
}

}  // namespace
}  // namespace kiln
