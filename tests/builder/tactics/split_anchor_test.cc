// A region taken apart into its anchor and one loop gives what its nodes give.
#include "builder/tactics/split_anchor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "builder/verify/compare.h"
#include "builder/verify/random_inputs.h"
#include "tests/builder/codegen/cuda/run_on_host.h"

namespace kiln {
namespace {

// Stored channels last; the bias is narrowed in the region.
constexpr char kRegion[] = R"(graph {
  input %0 : f16[1x3x4x6] "x"
  input %1 : f16[6x2x2x2] "w"
  input %2 : f32[2] "bias"
  %3 = transpose{perm=[0, 3, 1, 2]}(%0) : f16[1x6x3x4] ; "t"
  %4 = transpose{perm=[0, 3, 1, 2]}(%1) : f16[6x2x2x2] ; "t"
  %5 = cast{saturate=1, to="f16"}(%2) : f16[2] ; "c"
  %6 = conv_transpose{dilations=[1, 1], groups=1, output_padding=[0, 0], pads_begin=[0, 0], pads_end=[0, 0], strides=[2, 2]}(%3, %4, %5) : f16[1x2x6x8] ; "a"
  %7 = cast{saturate=1, to="f32"}(%6) : f32[1x2x6x8] ; "c"
  %8 = sigmoid(%7) : f32[1x2x6x8] ; "s"
  output %8 "y"
})";
constexpr char kAnchor[] = R"(graph {
  input %0 : f16[1x3x4x6] "x"
  input %1 : f16[6x2x2x2] "w"
  %3 = transpose{perm=[0, 3, 1, 2]}(%0) : f16[1x6x3x4] ; "t"
  %4 = transpose{perm=[0, 3, 1, 2]}(%1) : f16[6x2x2x2] ; "t"
  %6 = conv_transpose{dilations=[1, 1], groups=1, output_padding=[0, 0], pads_begin=[0, 0], pads_end=[0, 0], strides=[2, 2]}(%3, %4) : f16[1x2x6x8] ; "a"
  %7 = transpose{perm=[0, 2, 3, 1]}(%6) : f16[1x6x8x2] ; "t"
  output %7 "y"
})";

TEST(SplitAnchor, TheRestComputesTheBiasItNeeds) {
  const auto body = ir::parse_text(kRegion), anchor = ir::parse_text(kAnchor);
  ASSERT_TRUE(body.ok()) << body.error().message;
  ASSERT_TRUE(anchor.ok()) << anchor.error().message;
  auto chain = match_anchor(*body);
  ASSERT_TRUE(chain.ok()) << chain.error().message;
  chain->steps.clear();  // the call leaves the bias out
  const auto rest = split_rest(*body, *chain);
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  EXPECT_EQ(rest->anchor_result, (TensorType{DType::kF16, {1, 6, 8, 2}}));

  const auto inputs = random_inputs(*body, 1);
  const auto want = run_reference(*body, inputs);
  const auto between = run_reference(*anchor, std::span(inputs).first(2));
  ASSERT_TRUE(want.ok() && between.ok());
  std::vector<codegen::Bytes> given;
  for (size_t i = 0; i < rest->inputs.size(); ++i) {
    const auto place = std::ranges::find(body->inputs(), rest->inputs[i]) - body->inputs().begin();
    const HostTensor& from =
        i == rest->anchor_input ? between->front() : inputs[static_cast<size_t>(place)];
    given.emplace_back(from.bytes.bytes.begin(), from.bytes.bytes.end());
  }
  const auto got = codegen::interpret(rest->kernel, given);
  ASSERT_TRUE(got.ok()) << got.error().message;
  const auto same = compare(want->front().type, got->front().data(), want->front().bytes.data(),
                            accuracy_for(DType::kF16));
  EXPECT_TRUE(same.passed) << same.worst;
}

}  // namespace
}  // namespace kiln
