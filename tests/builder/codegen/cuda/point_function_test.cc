// What may follow an element in a function of one point, and what may not; few_rows_kernel_test.cc
// runs such functions.
#include "builder/codegen/cuda/point_function.h"

#include <gtest/gtest.h>

#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/body.h"

namespace kiln::codegen {
namespace {

// "" or why `body` is no function of the elements of its first input.
std::string refusal(const Body& body) {
  const auto kernel = lower_to_loop(body.graph);
  EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  const auto made = point_function(*kernel, 0);
  return made.ok() ? "" : made.error().message;
}

TEST(PointFunction, HasOneParameterForEveryOtherBuffer) {
  Body body;
  const auto x = body.in("f16[2x3x4]"), bias = body.in("f16[4]");
  body.out(body.fn(ScalarFn::kAdd, {x, bias}));
  const auto kernel = lower_to_loop(body.graph);
  ASSERT_TRUE(kernel.ok());
  const auto made = point_function(*kernel, 0);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->parameters, "const void* b1, void* b2");
  EXPECT_EQ(made->arguments, "b1, b2");
}

TEST(PointFunction, TakesReshapesAndBroadcastsOfOtherOperands) {
  Body body;
  const auto x = body.in("bf16[2x3x4]"), column = body.in("bf16[3x1]");
  const auto sum = body.fn(ScalarFn::kMul, {x, column});
  body.out(body.reshape(sum, {6, 4}));
  EXPECT_EQ(refusal(body), "");
}

TEST(PointFunction, TakesNeighboursTogether) {
  Body body, odd, one;
  const auto x = body.in("f16[2x3x8]"), bias = body.in("f16[8]");
  body.out(body.fn(ScalarFn::kAdd, {x, bias}));
  odd.out(odd.fn(ScalarFn::kExp, {odd.in("f32[3x7]")}));
  one.out(one.fn(ScalarFn::kExp, {one.in("f32[1x1]")}));
  const auto made = [](const Body& body) {
    const auto kernel = lower_to_loop(body.graph);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    return point_function(*kernel, 0, 4);
  };
  const auto four = made(body);
  ASSERT_TRUE(four.ok()) << four.error().message;
  EXPECT_NE(four->text.find("float of[4]"), std::string::npos);
  // Of what lies beside each other, one access: the bias is read and the sum is stored so.
  EXPECT_NE(four->text.find("load<f16, 4>(b1"), std::string::npos) << four->text;
  EXPECT_NE(four->text.find("store(b2"), std::string::npos) << four->text;
  // What a call gets is chosen element by element or not at all.
  Body chosen;
  const auto y = chosen.in("f32[3x8]"), other = chosen.in("f32[3x8]");
  chosen.out(chosen.fn(ScalarFn::kWhere, {chosen.in("bool[]"), y, other}));
  EXPECT_FALSE(made(chosen).ok());
  EXPECT_FALSE(made(odd).ok());
  EXPECT_FALSE(made(one).ok());
}

TEST(PointFunction, RefusesWhatNeedsMoreThanItsElement) {
  Body sum, shift, twice, wide;
  sum.out(sum.reduce(ReduceFn::kSum, sum.in("f32[4x8]"), {1}));
  EXPECT_EQ(refusal(sum), "what follows the product reduces");
  shift.out(shift.op(ir::Slice{{1}, {7}, {1}}, {shift.in("f32[8]")}));
  EXPECT_NE(refusal(shift), "");
  const auto x = twice.in("f32[4x4]");
  twice.out(twice.fn(ScalarFn::kAdd, {x, twice.transpose(x, {1, 0})}));
  EXPECT_EQ(refusal(twice), "the element is read in several places");
  const auto row = wide.in("f32[4]");
  wide.out(wide.fn(ScalarFn::kAdd, {row, wide.in("f32[3x4]")}));
  EXPECT_EQ(refusal(wide), "what follows the product moves its elements");
}

}  // namespace
}  // namespace kiln::codegen
