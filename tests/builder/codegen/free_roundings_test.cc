#include "builder/codegen/free_roundings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/body.h"
#include "tests/builder/codegen/cuda/run_on_host.h"

namespace kiln::codegen {
namespace {

std::string text_of(const Body& body, CudaSchedule schedule = {}) {
  const auto source = emit_cuda(*lower_to_loop(body.graph), schedule);
  EXPECT_TRUE(source.ok()) << (source.ok() ? "" : source.error().message);
  return source.ok() ? source->text : "";
}

bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

// (bf16)(x * x + 1) * x, its first factor through `change`.
Body rounded_factor(const std::function<ir::ValueId(Body&, ir::ValueId)>& change) {
  Body b;
  const auto x = b.in("bf16[4096]");
  const auto wide = b.op(ir::Cast{DType::kF32}, {x});
  const auto square = b.fn(ScalarFn::kMul, {wide, wide});
  const auto sum = b.fn(ScalarFn::kAdd, {square, b.scalar(1.0f)});
  const auto narrow = change(b, b.op(ir::Cast{DType::kBF16}, {sum}));
  b.out(b.fn(ScalarFn::kMul, {narrow, x}));
  return b;
}

TEST(FreeRoundings, LeaveOutWhatOnly16BitFloatsAreMadeOf) {
  const auto same = [](Body&, ir::ValueId x) { return x; };
  const std::string text = text_of(rounded_factor(same));
  EXPECT_FALSE(has(text, "cast<f32, bf16>")) << text;
  EXPECT_TRUE(has(text, "fmaf(")) << text;
}

TEST(FreeRoundings, AreNotTakenBeforeSteps) {
  const auto floor = [](Body& b, ir::ValueId x) { return b.fn(ScalarFn::kFloor, {x}); };
  EXPECT_TRUE(has(text_of(rounded_factor(floor)), "cast<f32, bf16>"));
  const auto compared = [](Body& b, ir::ValueId x) {
    const auto two = b.op(ir::Cast{DType::kBF16}, {b.scalar(2.0f)});
    return b.fn(ScalarFn::kWhere, {b.fn(ScalarFn::kLess, {x, two}), x, two});
  };
  const std::string text = text_of(rounded_factor(compared));
  EXPECT_TRUE(has(text, "cast<f32, bf16>")) << text;
  EXPECT_FALSE(has(text, "fmaf(")) << text;
}

TEST(FreeRoundings, AreNotTakenWhereF32IsStored) {
  Body b = rounded_factor([](Body&, ir::ValueId x) { return x; });
  const auto y = b.graph.outputs()[0];
  b.out(b.op(ir::Cast{DType::kF32}, {y}));
  const std::string text = text_of(b);
  EXPECT_TRUE(has(text, "cast<f32, bf16>")) << text;
  EXPECT_FALSE(has(text, "fmaf(")) << text;
}

TEST(FreeRoundings, SumProductsRoundedOnce) {
  Body b;
  const auto x = b.in("f16[8x512]");
  const auto wide = b.op(ir::Cast{DType::kF32}, {x});
  const auto sum = b.reduce(ReduceFn::kSum, b.fn(ScalarFn::kMul, {wide, wide}), {1});
  b.out(b.op(ir::Cast{DType::kF16}, {sum}));
  EXPECT_TRUE(has(text_of(b, {.family = Family::kRows, .vector = 8, .group = 32}), "= fmaf("));
}

// RMS normalisation as PyTorch exports it, with a rounding before the weight: without it, every
// element is within half a unit in the last place.
TEST(FreeRoundings, BringResultsNearerToTheExactOnes) {
  constexpr int kRows = 16, kColumns = 1024;
  Body b;
  const auto x = b.in("bf16[16x1024]");
  const auto weight = b.in("bf16[1024]");
  const auto wide = b.op(ir::Cast{DType::kF32}, {x});
  const auto sum = b.reduce(ReduceFn::kSum, b.fn(ScalarFn::kMul, {wide, wide}), {1});
  const auto mean = b.fn(ScalarFn::kMul, {sum, b.scalar(1.0f / kColumns)});
  const auto root = b.fn(ScalarFn::kSqrt, {b.fn(ScalarFn::kAdd, {mean, b.scalar(1e-5f)})});
  const auto normal = b.op(ir::Cast{DType::kBF16}, {b.fn(ScalarFn::kDiv, {wide, root})});
  b.out(b.fn(ScalarFn::kMul, {normal, weight}));
  const loop::LoopKernel kernel = *lower_to_loop(b.graph);
  auto source = emit_cuda(
      kernel, {.family = Family::kRows, .threads = 128, .vector = 8, .group = 128, .keep = true});
  ASSERT_TRUE(source.ok()) << source.error().message;
  const auto program = HostProgram::compile({{kernel, *std::move(source)}});
  ASSERT_TRUE(program.ok()) << program.error().message;

  std::mt19937 random(1);
  const auto bf16 = [](float v) {
    uint32_t bits = 0;
    std::memcpy(&bits, &v, 4);
    return static_cast<uint16_t>(bits >> 16);
  };
  const auto wide_of = [](uint16_t v) {
    const uint32_t bits = uint32_t{v} << 16;
    float x = 0;
    std::memcpy(&x, &bits, 4);
    return static_cast<double>(x);
  };
  std::normal_distribution<float> normal_values;
  std::vector<uint16_t> values(kRows * kColumns), weights(kColumns), got(values.size());
  for (uint16_t& v : values) v = bf16(normal_values(random));
  for (uint16_t& v : weights) v = bf16(normal_values(random));
  const auto bytes = [](const std::vector<uint16_t>& v) {
    Bytes raw(v.size() * 2);
    std::memcpy(raw.data(), v.data(), raw.size());
    return raw;
  };
  const auto ran = program->run(0, {bytes(values), bytes(weights)});
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  std::memcpy(got.data(), ran->front().data(), got.size() * 2);
  for (size_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (size_t c = 0; c < kColumns; ++c)
      squares += std::pow(wide_of(values[row * kColumns + c]), 2);
    const double scale = 1 / std::sqrt(squares / kColumns + 1e-5);
    for (size_t c = 0; c < kColumns; ++c) {
      const size_t i = row * kColumns + c;
      const double want = wide_of(values[i]) * scale * wide_of(weights[c]);
      const double ulp = std::ldexp(1, std::ilogb(want) - 7);
      ASSERT_LE(std::abs(wide_of(got[i]) - want), 0.501 * ulp) << row << ", " << c;
    }
  }
}

}  // namespace
}  // namespace kiln::codegen
