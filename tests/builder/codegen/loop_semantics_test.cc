// A lowered body computes what its nodes compute: fixed bodies of the kinds that models have, and
// random ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "builder/codegen/lower_loop.h"
#include "formats/loop_ir/loop_kernel.h"
#include "tests/builder/codegen/body.h"
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

// --- random bodies ---

class RandomBody {
 public:
  explicit RandomBody(uint32_t seed) : random_(seed) {}

  Body make() {
    const auto first = body_.in(to_string(TensorType{DType::kF32, random_shape()}));
    values_.push_back(first);
    const int steps = 2 + pick(7);
    for (int i = 0; i < steps; ++i) values_.push_back(step());
    body_.out(values_.back());
    return std::move(body_);
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }

  Shape random_shape() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 6, 8, 12};
    Shape shape(1 + static_cast<size_t>(pick(4)));
    for (int64_t& extent : shape) extent = kExtents[pick(7)];
    return shape;
  }

  // An operand that broadcasts to `shape`: an earlier value if one fits, else a new input.
  ir::ValueId operand(const Shape& shape) {
    for (int tries = 0; tries < 3; ++tries) {
      const ir::ValueId v = values_[static_cast<size_t>(pick(static_cast<int>(values_.size())))];
      if (body_.graph.type(v).shape == shape) return v;
    }
    Shape smaller = shape;
    for (int64_t& extent : smaller) extent = pick(3) == 0 ? 1 : extent;
    smaller.erase(smaller.begin(), smaller.begin() + pick(static_cast<int>(shape.size()) + 1));
    return body_.in(to_string(TensorType{DType::kF32, smaller}));
  }

  Shape factored(int64_t count) {
    Shape shape;
    for (const int64_t factor : {2, 3, 4, 6}) {
      if (count % factor == 0 && pick(2) == 0) {
        shape.push_back(factor);
        count /= factor;
      }
    }
    shape.insert(shape.begin() + pick(static_cast<int>(shape.size()) + 1), count);
    return shape;
  }

  ir::ValueId step() {
    const ir::ValueId x = values_.back();
    const Shape shape = body_.graph.type(x).shape;
    const size_t rank = shape.size();
    switch (pick(9)) {
      case 0:
        return body_.fn(ScalarFn::kTanh, {x});
      case 1:
      case 2: {
        const ScalarFn fns[] = {ScalarFn::kAdd, ScalarFn::kSub, ScalarFn::kMax, ScalarFn::kMul};
        return body_.fn(fns[pick(4)], {x, operand(shape)});
      }
      case 3: {
        std::vector<int64_t> perm(rank);
        for (size_t a = 0; a < rank; ++a) perm[a] = static_cast<int64_t>(a);
        std::shuffle(perm.begin(), perm.end(), random_);
        return body_.transpose(x, perm);
      }
      case 4:
        return body_.reshape(x, factored(element_count(shape)));
      case 5: {
        ir::Slice slice;
        for (const int64_t extent : shape) {
          const int64_t size = 1 + pick(static_cast<int>(extent));
          const bool backwards = pick(3) == 0;
          slice.sizes.push_back(size);
          slice.steps.push_back(backwards ? -1 : 1);
          slice.starts.push_back(backwards ? extent - 1
                                           : pick(static_cast<int>(extent - size) + 1));
        }
        return body_.op(slice, {x});
      }
      case 6: {
        ir::Pad pad;
        for (size_t a = 0; a < rank; ++a) {
          pad.before.push_back(pick(3) == 0 ? pick(3) : 0);
          pad.after.push_back(pick(3) == 0 ? pick(3) : 0);
        }
        return body_.op(pad, {x, body_.scalar(1.5f)});
      }
      case 7: {
        const auto axis = static_cast<size_t>(pick(static_cast<int>(rank)));
        Shape other = shape;
        other[axis] = 1 + pick(3);
        const auto y = body_.in(to_string(TensorType{DType::kF32, other}));
        return body_.op(ir::Concat{static_cast<int64_t>(axis)}, {x, y});
      }
      default: {
        const auto axis = static_cast<int64_t>(pick(static_cast<int>(rank)));
        const auto r = body_.reduce(pick(2) ? ReduceFn::kSum : ReduceFn::kMax, x, {axis});
        return pick(3) ? body_.fn(ScalarFn::kSub, {x, r}) : r;
      }
    }
  }

  std::mt19937 random_;
  Body body_;
  std::vector<ir::ValueId> values_;
};

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
