#include "builder/codegen/lower_loop.h"

#include <gtest/gtest.h>

#include "tests/builder/codegen/body.h"

namespace kiln::codegen {
namespace {

std::string lowered(const Body& body) {
  auto kernel = lower_to_loop(body.graph);
  return kernel.ok() ? loop::to_text(*kernel) : "refused: " + kernel.error().message + "\n";
}

TEST(LowerLoop, PointwiseChainIsOneDim) {
  Body b;
  const auto x = b.in("f32[2x3x4]"), y = b.in("f32[2x3x4]");
  b.out(b.fn(ScalarFn::kErf, {b.fn(ScalarFn::kAdd, {x, y})}));
  EXPECT_EQ(lowered(b),
            "loop d0<24\n"
            "  in b0 f32[24]\n"
            "  in b1 f32[24]\n"
            "  out b2 f32[24]\n"
            "  %0: f32 = b0[d0]\n"
            "  %1: f32 = b1[d0]\n"
            "  %2: f32 = add(%0, %1)\n"
            "  %3: f32 = erf(%2)\n"
            "  b2[d0] = %3\n");
}

TEST(LowerLoop, Softmax) {
  Body b;
  b.out(b.softmax(b.in("f32[2x3x5]"), 2));
  EXPECT_EQ(lowered(b),
            "loop d0<6 d1~5\n"
            "  in b0 f32[30]\n"
            "  out b1 f32[30]\n"
            "  %0: f32 = b0[5*d0 + d1]\n"
            "  %1: f32 = reduce_max(%0)\n"
            "  %2: f32 = sub(%0, %1)\n"
            "  %3: f32 = exp(%2)\n"
            "  %4: f32 = reduce_sum(%3)\n"
            "  %5: f32 = div(%3, %4)\n"
            "  b1[5*d0 + d1] = %5\n");
}

TEST(LowerLoop, SoftmaxOverTheMiddleThenTransposed) {
  Body b;
  b.out(b.transpose(b.softmax(b.in("f32[2x3x5]"), 1), {0, 2, 1}));
  EXPECT_EQ(lowered(b),
            "loop d0<2 d1<5 d2~3\n"
            "  in b0 f32[30]\n"
            "  out b1 f32[30]\n"
            "  %0: f32 = b0[15*d0 + d1 + 5*d2]\n"
            "  %1: f32 = reduce_max(%0)\n"
            "  %2: f32 = sub(%0, %1)\n"
            "  %3: f32 = exp(%2)\n"
            "  %4: f32 = reduce_sum(%3)\n"
            "  %5: f32 = div(%3, %4)\n"
            "  b1[15*d0 + 3*d1 + d2] = %5\n");
}

TEST(LowerLoop, GroupNorm) {
  Body b;
  const auto x = b.in("f32[2x6x4x4]"), scale = b.in("f32[6x1x1]");
  const auto g = b.reshape(x, {2, 3, 32});
  const auto mean = b.fn(ScalarFn::kMul, {b.reduce(ReduceFn::kSum, g, {2}), b.scalar(1 / 32.f)});
  const auto centered = b.fn(ScalarFn::kSub, {g, mean});
  b.out(b.fn(ScalarFn::kMul, {b.reshape(centered, {2, 6, 4, 4}), scale}));
  EXPECT_EQ(lowered(b),
            "loop d0<2 d1<3 d2~2 d3~16\n"
            "  in b0 f32[192]\n"
            "  in b1 f32[6]\n"
            "  out b2 f32[192]\n"
            "  %0: f32 = b0[96*d0 + 32*d1 + 16*d2 + d3]\n"
            "  %1: f32 = reduce_sum(%0)\n"
            "  %2: f32 = 0x3d000000\n"
            "  %3: f32 = mul(%1, %2)\n"
            "  %4: f32 = sub(%0, %3)\n"
            "  %5: f32 = b1[2*d1 + d2]\n"
            "  %6: f32 = mul(%4, %5)\n"
            "  b2[96*d0 + 32*d1 + 16*d2 + d3] = %6\n");
}

TEST(LowerLoop, SplitHeads) {
  Body b;
  const auto x = b.in("f32[2x7x12]"), bias = b.in("f32[12]");
  const auto y = b.reshape(b.fn(ScalarFn::kAdd, {x, bias}), {2, 7, 3, 4});
  b.out(b.transpose(y, {0, 2, 1, 3}));
  EXPECT_EQ(lowered(b),
            "loop d0<2 d1<3 d2<7 d3<4\n"
            "  in b0 f32[168]\n"
            "  in b1 f32[12]\n"
            "  out b2 f32[168]\n"
            "  %0: f32 = b0[84*d0 + 4*d1 + 12*d2 + d3]\n"
            "  %1: f32 = b1[4*d1 + d3]\n"
            "  %2: f32 = add(%0, %1)\n"
            "  b2[84*d0 + 28*d1 + 4*d2 + d3] = %2\n");
}

TEST(LowerLoop, ReshapeThatCutsNoDim) {
  Body b;
  const auto x = b.in("f32[4x3]"), bias = b.in("f32[3]");
  b.out(b.reshape(b.fn(ScalarFn::kAdd, {x, bias}), {6, 2}));
  EXPECT_EQ(lowered(b),
            "loop d0<12\n"
            "  in b0 f32[12]\n"
            "  in b1 f32[3]\n"
            "  out b2 f32[12]\n"
            "  %0: f32 = b0[d0]\n"
            "  %1: f32 = b1[(d0%3)]\n"
            "  %2: f32 = add(%0, %1)\n"
            "  b2[d0] = %2\n");
}

TEST(LowerLoop, Concat) {
  Body b;
  const auto x = b.in("f32[2x3]"), y = b.in("f32[2x4]");
  b.out(b.op(ir::Concat{1}, {x, y}));
  EXPECT_EQ(lowered(b),
            "loop d0<2 d1<7\n"
            "  in b0 f32[6]\n"
            "  in b1 f32[8]\n"
            "  out b2 f32[14]\n"
            "  %0: f32 = b1[4*d0 + d1 - 3] if 0 <= d1 - 3 < 4 else 0x0\n"
            "  %1: f32 = b0[3*d0 + d1] if 0 <= d1 < 3 else 0x0\n"
            "  %2: i64 = d1\n"
            "  %3: i64 = 0x3\n"
            "  %4: bool = less(%2, %3)\n"
            "  %5: f32 = where(%4, %1, %0)\n"
            "  b2[7*d0 + d1] = %5\n");
}

TEST(LowerLoop, PadAndGather) {
  Body b;
  const auto x = b.in("f32[10x3]"), i = b.in("i64[2x2]");
  const auto g = b.op(ir::Gather{0}, {x, i});
  b.out(b.op(ir::Pad{{0, 0, 1}, {0, 0, 1}}, {g, b.scalar(2.0f)}));
  EXPECT_EQ(lowered(b),
            "loop d0<4 d1<5\n"
            "  in b0 f32[30]\n"
            "  in b1 i64[4]\n"
            "  out b2 f32[20]\n"
            "  %0: i64 = 0x0\n"
            "  %1: i64 = b1[d0]\n"
            "  %2: i64 = 0xa\n"
            "  %3: bool = less(%1, %0)\n"
            "  %4: i64 = add(%1, %2)\n"
            "  %5: i64 = where(%3, %4, %1)\n"
            "  %6: f32 = b0[d1 + 3*%5<10> - 1] if 0 <= d1 - 1 < 3 else 0x40000000\n"
            "  b2[5*d0 + d1] = %6\n");
}

TEST(LowerLoop, MeanBesideTheValue) {
  Body b;
  const auto x = b.in("f32[4x3]");
  const auto y = b.fn(ScalarFn::kExp, {x});
  b.out(y).out(b.reduce(ReduceFn::kSum, y, {0}, false));
  EXPECT_EQ(lowered(b),
            "loop d0~4 d1<3\n"
            "  in b0 f32[12]\n"
            "  out b1 f32[12]\n"
            "  out b2 f32[3]\n"
            "  %0: f32 = b0[3*d0 + d1]\n"
            "  %1: f32 = exp(%0)\n"
            "  %2: f32 = reduce_sum(%1)\n"
            "  b1[3*d0 + d1] = %1\n"
            "  b2[d1] = %2\n");
}

TEST(LowerLoop, ReorderedOutputsShareTheLoop) {
  Body b;
  const auto x = b.in("f32[3x17x4]");
  const auto y = b.fn(ScalarFn::kSub, {x, b.reduce(ReduceFn::kMax, x, {2})});
  b.out(b.transpose(y, {1, 0, 2})).out(y);
  EXPECT_EQ(lowered(b),
            "loop d0<3 d1<17 d2~4\n"
            "  in b0 f32[204]\n"
            "  out b1 f32[204]\n"
            "  out b2 f32[204]\n"
            "  %0: f32 = b0[68*d0 + 4*d1 + d2]\n"
            "  %1: f32 = reduce_max(%0)\n"
            "  %2: f32 = sub(%0, %1)\n"
            "  b1[4*d0 + 12*d1 + d2] = %2\n"
            "  b2[68*d0 + 4*d1 + d2] = %2\n");
}

TEST(LowerLoop, RefusalsSayWhy) {
  {
    Body b;
    b.out(b.op(ir::MatMul{}, {b.in("f32[2x3]"), b.in("f32[3x4]")}));
    EXPECT_EQ(lowered(b), "refused: 'n0' is no pointwise operation, reduction or view\n");
  }
  {
    Body b;  // one row's sum over columns and one column's sum over rows
    const auto x = b.in("f32[3x4]");
    const auto rows = b.reduce(ReduceFn::kSum, x, {0});
    b.out(b.fn(ScalarFn::kAdd, {rows, b.reduce(ReduceFn::kSum, x, {1})}));
    EXPECT_NE(lowered(b).find("refused: a reduction is needed at every point"), std::string::npos);
  }
  {
    Body b;
    const auto x = b.in("f32[3x4]");
    b.out(x).out(b.op(ir::Slice{{0, 0}, {3, 2}, {1, 1}}, {x}));
    EXPECT_EQ(lowered(b), "refused: output 'n0' has 6 elements and the loop 12 points\n");
  }
}

}  // namespace
}  // namespace kiln::codegen
