// A lowered body computes what its nodes compute: fixed bodies of the kinds that models have, and
// random ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "builder/codegen/lower_loop.h"
#include "formats/loop_ir/loop_kernel.h"
#include "tests/builder/codegen/body.h"
#include "tests/builder/codegen/random_body.h"
#include "tests/builder/codegen/run_body.h"

namespace kiln::codegen {
namespace {

void expect_same(const Body& body, double tolerance = 1e-5, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<Bytes> inputs;
  for (const ir::ValueId input : body.graph.inputs()) {
    inputs.push_back(random_bytes(body.graph.type(input), -3, 1, random));
  }
  auto want = run_node_by_node(body.graph, inputs);
  ASSERT_TRUE(want.ok()) << want.error().message;
  auto got = run_lowered(body.graph, inputs);
  ASSERT_TRUE(got.ok()) << got.error().message << "\n" << ir::to_text(body.graph);
  for (size_t o = 0; o < want->size(); ++o) {
    const DType dtype = body.graph.type(body.graph.outputs()[o]).dtype;
    const std::string found = difference(dtype, (*got)[o], (*want)[o], tolerance);
    EXPECT_EQ(found, "") << "output " << o << " of\n"
                         << ir::to_text(body.graph) << loop::to_text(*lower_to_loop(body.graph));
  }
}

TEST(LoopSemantics, PointwiseChains) {
  for (const char* type : {"f32[3x5x7]", "f64[2000]", "f16[1500]", "bf16[40x40]", "f32[]"}) {
    Body b;
    const auto x = b.in(type), y = b.in(type);
    const auto s = b.fn(ScalarFn::kAdd, {x, y});
    b.out(b.fn(ScalarFn::kMul, {b.fn(ScalarFn::kTanh, {s}), b.fn(ScalarFn::kErf, {x})}));
    expect_same(b, 2e-2);
  }
}

TEST(LoopSemantics, BroadcastsOfEveryKind) {
  Body b;
  const auto x = b.in("f32[4x5x6]"), row = b.in("f32[6]"), column = b.in("f32[5x1]");
  const auto one = b.in("f32[1]");
  auto s = b.fn(ScalarFn::kAdd, {x, row});
  s = b.fn(ScalarFn::kMul, {column, s});
  s = b.fn(ScalarFn::kMax, {s, one});
  b.out(b.fn(ScalarFn::kSub, {s, b.scalar(0.5f)}));
  expect_same(b);
}

TEST(LoopSemantics, SoftmaxAlongEachAxisInShortAndLongRows) {
  for (const char* type : {"f32[3x4x5]", "f32[2x700x3]", "f32[3x3x5000]", "f32[64x64x48]"}) {
    for (int64_t axis = 0; axis < 3; ++axis) {
      Body b;
      b.out(b.softmax(b.in(type), axis));
      expect_same(b);
    }
  }
}

TEST(LoopSemantics, LayerNorm) {
  for (const int64_t width : {8, 768, 9000}) {
    Body b;
    const std::string n = std::to_string(width);
    const auto x = b.in("f32[6x" + n + "]"), g = b.in("f32[" + n + "]"), h = b.in("f32[" + n + "]");
    const auto scale = b.scalar(1.0f / static_cast<float>(width));
    const auto mean = b.fn(ScalarFn::kMul, {b.reduce(ReduceFn::kSum, x, {1}), scale});
    const auto centered = b.fn(ScalarFn::kSub, {x, mean});
    const auto square = b.fn(ScalarFn::kMul, {centered, centered});
    const auto variance = b.fn(ScalarFn::kMul, {b.reduce(ReduceFn::kSum, square, {1}), scale});
    const auto deviation =
        b.fn(ScalarFn::kSqrt, {b.fn(ScalarFn::kAdd, {variance, b.scalar(1e-5f)})});
    const auto y = b.fn(ScalarFn::kMul, {b.fn(ScalarFn::kDiv, {centered, deviation}), g});
    b.out(b.fn(ScalarFn::kAdd, {y, h})).out(mean).out(centered);
    expect_same(b);
  }
}

TEST(LoopSemantics, ReorderedOutputs) {
  for (const char* type : {"f32[3x17x4]", "f32[4x4x4]"}) {
    Body b;
    const auto y = b.softmax(b.in(type), 2);
    const auto t = b.transpose(y, {1, 0, 2});
    b.out(t).out(b.reshape(t, {b.graph.type(t).elements()})).out(y);
    expect_same(b);
  }
}

TEST(LoopSemantics, GroupNormThroughReshapes) {
  Body b;
  const auto x = b.in("f32[2x6x8x8]"), scale = b.in("f32[6x1x1]");
  const auto g = b.reshape(x, {2, 3, 128});
  const auto mean = b.fn(ScalarFn::kMul, {b.reduce(ReduceFn::kSum, g, {2}), b.scalar(1 / 128.f)});
  const auto centered = b.fn(ScalarFn::kSub, {g, mean});
  b.out(b.fn(ScalarFn::kMul, {b.reshape(centered, {2, 6, 8, 8}), scale}));
  expect_same(b);
}

TEST(LoopSemantics, ReductionsOfEveryFunctionAndAxes) {
  for (const ReduceFn fn : {ReduceFn::kSum, ReduceFn::kProd, ReduceFn::kMax, ReduceFn::kMin}) {
    for (const std::vector<int64_t>& axes :
         std::vector<std::vector<int64_t>>{{0}, {1}, {2}, {0, 2}, {0, 1, 2}, {1, 2}}) {
      for (const char* type : {"f32[3x40x50]", "i32[4x3x5]", "f32[3x0x5]", "u8[2x3x1]"}) {
        Body b;
        b.out(b.reduce(fn, b.in(type), axes, false));
        expect_same(b);
      }
    }
  }
  for (const ReduceFn fn : {ReduceFn::kAny, ReduceFn::kAll}) {
    Body b;
    b.out(b.reduce(fn, b.in("bool[20x3]"), {1}, true));
    expect_same(b);
  }
}

TEST(LoopSemantics, ViewsOfEveryKind) {
  Body b;
  const auto x = b.in("f32[4x6x5]");
  const auto t = b.transpose(x, {2, 0, 1});                                 // 5x4x6
  const auto s = b.op(ir::Slice{{4, 1, 0}, {3, 3, 2}, {-2, 1, 5}}, {t});    // 3x3x2
  const auto p = b.op(ir::Pad{{1, 0, 2}, {0, 1, 1}}, {s, b.scalar(7.0f)});  // 4x4x5
  const auto c = b.op(ir::Concat{1}, {p, b.in("f32[4x2x5]"), p});           // 4x10x5
  const auto r = b.reshape(c, {2, 2, 10, 5});
  b.out(b.fn(ScalarFn::kAdd, {r, b.op(ir::Broadcast{{2, 2, 10, 5}}, {b.in("f32[10x1]")})}));
  expect_same(b);
}

TEST(LoopSemantics, GathersCountFromTheEnd) {
  Body b;
  const auto table = b.in("f32[3x40]"), index = b.in("i64[2x5]");
  const auto g = b.op(ir::Gather{0}, {table, index});
  b.out(b.fn(ScalarFn::kMul, {g, b.in("f32[40]")}));
  expect_same(b);
  Body c;
  c.out(c.op(ir::Gather{1}, {c.in("f16[4x3x2]"), c.in("i32[7]")}));
  expect_same(c);
}

TEST(LoopSemantics, GatherOutOfRangeIsAnError) {
  Body b;
  b.out(b.op(ir::Gather{0}, {b.in("f32[3]"), b.in("i64[2]")}));
  const int64_t indices[] = {1, 3};
  Bytes bytes(sizeof indices);
  std::memcpy(bytes.data(), indices, sizeof indices);
  const auto got = run_lowered(b.graph, {Bytes(12), bytes});
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().message.find("index 3 is outside of [0, 3)"), std::string::npos);
}

TEST(LoopSemantics, CastsAndWhere) {
  for (const char* to : {"f16", "i8", "u4", "bool", "f8e4m3fn", "f64", "i64"}) {
    Body b;
    const auto x = b.in("f32[33]");
    const auto c = b.op(ir::Cast{*parse_dtype(to)}, {x});
    const auto back = b.op(ir::Cast{DType::kF32}, {c});
    const auto negative = b.fn(ScalarFn::kLess, {x, b.scalar(0.0f)});
    b.out(c).out(b.fn(ScalarFn::kWhere, {negative, x, back}));
    expect_same(b, 0);
  }
}

TEST(LoopSemantics, InfinitiesOfEightBitFloatsAreStoredAsTheyAre) {
  Body b;
  b.out(b.transpose(b.op(ir::Cast{DType::kF8E5M2, false}, {b.in("f32[2x2]")}), {1, 0}));
  const float values[] = {INFINITY, 1e9f, -INFINITY, 1.0f};
  Bytes input(sizeof values);
  std::memcpy(input.data(), values, sizeof values);
  const auto got = run_lowered(b.graph, {input});
  ASSERT_TRUE(got.ok()) << got.error().message;
  const Bytes want{std::byte{0x7C}, std::byte{0xFC}, std::byte{0x7C}, std::byte{0x3C}};
  EXPECT_EQ(got->front(), want);
}

TEST(LoopSemantics, EmptyTensors) {
  Body b;
  b.out(b.fn(ScalarFn::kAdd, {b.in("f32[0x3]"), b.in("f32[3]")}));
  expect_same(b);
  Body c;
  const auto padded = c.op(ir::Pad{{2}, {1}}, {c.in("f32[0]"), c.scalar(3.0f)});
  c.out(c.fn(ScalarFn::kNeg, {padded}));
  expect_same(c);
  Body d;
  d.out(d.op(ir::Concat{0}, {d.in("f32[0x2]"), d.in("f32[3x2]"), d.in("f32[0x2]")}));
  expect_same(d);
}

TEST(LoopSemantics, RandomBodies) {
  int lowered = 0;
  constexpr int kBodies = 3000;
  for (uint32_t seed = 0; seed < kBodies; ++seed) {
    const Body body = RandomBody(seed).make();
    if (!lower_to_loop(body.graph).ok()) continue;
    ++lowered;
    expect_same(body, 1e-4, seed);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(lowered, kBodies * 2 / 3) << "the test says little";
}

}  // namespace
}  // namespace kiln::codegen
