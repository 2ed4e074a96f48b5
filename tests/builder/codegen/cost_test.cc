#include "builder/codegen/cost.h"

#include <gtest/gtest.h>

#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/body.h"

namespace kiln {
namespace {

using codegen::Body;

TEST(LoopCost, CountsEachInputElementOnce) {
  Body b;
  const auto x = b.in("f32[8x16]"), bias = b.in("f16[16]");
  const auto wide = b.op(ir::Cast{DType::kF32}, {bias});
  b.out(b.fn(ScalarFn::kMul, {b.fn(ScalarFn::kAdd, {x, wide}), x}));
  const LoopCost cost = cost_of(lower_to_loop(b.graph).value());
  EXPECT_EQ(cost.bytes_read, 8 * 16 * 4 + 16 * 2);
  EXPECT_EQ(cost.bytes_written, 8 * 16 * 4);
  EXPECT_EQ(cost.scalar_ops, 8 * 16 * 2 + 16);
}

TEST(LoopCost, SlicesReadWhatTheyReach) {
  Body b;
  b.out(b.op(ir::Slice{{0, 2}, {8, 3}, {1, 1}}, {b.in("f32[8x16]")}));
  const LoopCost cost = cost_of(lower_to_loop(b.graph).value());
  EXPECT_EQ(cost.bytes_read, 8 * 3 * 4);
}

TEST(LoopCost, FusedNormIsCheaperThanItsParts) {
  Body whole;
  whole.out(whole.softmax(whole.in("f32[64x1024]"), 1));
  Body part;
  part.out(part.fn(ScalarFn::kExp, {part.in("f32[64x1024]")}));
  const LoopCost fused = cost_of(lower_to_loop(whole.graph).value());
  const LoopCost exp = cost_of(lower_to_loop(part.graph).value());
  EXPECT_EQ(fused.bytes_read, exp.bytes_read);
  EXPECT_GT(fused.scalar_ops, exp.scalar_ops);
  EXPECT_LT(host_us(fused), 4 * host_us(exp));
}

}  // namespace
}  // namespace kiln
