#include "builder/codegen/value_ranges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/body.h"
#include "tests/builder/codegen/cuda/run_on_host.h"

namespace kiln::codegen {
namespace {

using Kind = loop::Expr::Kind;

loop::LoopKernel lowered(const Body& body) { return *lower_to_loop(body.graph); }

// Of the value that the kernel's last store stores.
Range stored_range(const Body& body) {
  const loop::LoopKernel kernel = lowered(body);
  return value_ranges(kernel)[kernel.exprs.back().args[0]];
}

// The tolerance of the first expr that applies fn.
double tolerance(const Body& body, ScalarFn fn) {
  const loop::LoopKernel kernel = lowered(body);
  const std::vector<double> all = value_tolerances(kernel, value_ranges(kernel));
  for (size_t id = 0; id < all.size(); ++id) {
    if (kernel.exprs[id].kind == Kind::kApply && kernel.exprs[id].fn == fn) return all[id];
  }
  return -1;
}

TEST(ValueRanges, FollowFunctions) {
  const auto after = [](const std::function<ir::ValueId(Body&, ir::ValueId)>& make) {
    Body b;
    b.out(make(b, b.in("f32[64]")));
    return stored_range(b);
  };
  EXPECT_EQ(after([](Body& b, auto x) { return b.fn(ScalarFn::kSin, {x}); }), (Range{-1, 1}));
  EXPECT_EQ(after([](Body& b, auto x) { return b.fn(ScalarFn::kExp, {x}); }).low, 0);
  const Range twice =
      after([](Body& b, auto x) { return b.fn(ScalarFn::kCos, {b.fn(ScalarFn::kCos, {x})}); });
  EXPECT_NEAR(twice.low, 0.5403023, 1e-7);
  EXPECT_EQ(twice.high, 1);
  const Range clip = after([](Body& b, auto x) {
    return b.fn(ScalarFn::kMin, {b.fn(ScalarFn::kMax, {x, b.scalar(-2.0f)}), b.scalar(6.0f)});
  });
  EXPECT_EQ(clip, (Range{-2, 6}));
  const Range product = after([](Body& b, auto x) {
    const auto t = b.fn(ScalarFn::kTanh, {x});
    return b.fn(ScalarFn::kMul, {b.fn(ScalarFn::kAdd, {t, b.scalar(1.0f)}), b.scalar(-3.0f)});
  });
  EXPECT_EQ(product, (Range{-6, 0}));
  EXPECT_EQ(after([](Body& b, auto x) { return b.fn(ScalarFn::kTan, {x}); }), Range{});
}

TEST(ValueTolerances, AreThereOnlyWhere16BitsAreKeptAndNothingCancels) {
  const auto of = [](std::string_view type, bool cancels) {
    Body b;
    auto y = b.fn(ScalarFn::kExp, {b.in(type)});
    if (cancels) y = b.fn(ScalarFn::kSub, {y, y});
    b.out(y);
    return tolerance(b, ScalarFn::kExp);
  };
  EXPECT_EQ(of("f32[64]", false), 0);
  EXPECT_EQ(of("bf16[64]", false), 1.0 / 512);
  EXPECT_EQ(of("f16[64]", false), 1.0 / 4096);
  EXPECT_EQ(of("bf16[64]", true), 0);
  Body softmax;
  softmax.out(softmax.softmax(softmax.in("f16[8x64]"), 1));
  EXPECT_EQ(tolerance(softmax, ScalarFn::kExp), 1.0 / 8192);
}

// --- the device code that is chosen by them, on all arguments of 16 bits, against float64 ---

double unit_in_last_place(double exact, int mantissa, int lowest) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::ldexp(1.0, std::max(exponent - mantissa, lowest));
}

float as_float(DType dtype, uint16_t bits) {
  if (dtype == DType::kBF16) {
    const uint32_t word = uint32_t{bits} << 16;
    float x = 0;
    std::memcpy(&x, &word, sizeof x);
    return x;
  }
  _Float16 x;
  std::memcpy(&x, &bits, sizeof x);
  return static_cast<float>(x);
}

struct Case {
  std::string name;
  std::function<ir::ValueId(Body&, ir::ValueId)> body;
  std::function<double(double)> exact;
  std::string quick;  // what the text has
};

Case cosines(int depth) {
  return {"cos " + std::to_string(depth),
          [=](Body& b, ir::ValueId x) {
            for (int i = 0; i < depth; ++i) x = b.fn(ScalarFn::kCos, {x});
            return x;
          },
          [=](double x) {
            for (int i = 0; i < depth; ++i) x = std::cos(x);
            return x;
          },
          depth > 1 ? "cos_near_0<" : "op_cos"};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int depth : {1, 2, 4, 8}) all.push_back(cosines(depth));
  all.push_back({"sin of cos",
                 [](Body& b, auto x) { return b.fn(ScalarFn::kSin, {b.fn(ScalarFn::kCos, {x})}); },
                 [](double x) { return std::sin(std::cos(x)); }, "sin_near_0<"});
  all.push_back({"exp", [](Body& b, auto x) { return b.fn(ScalarFn::kExp, {x}); },
                 [](double x) { return std::exp(x); }, "quick_exp"});
  all.push_back(
      {"silu",
       [](Body& b, auto x) { return b.fn(ScalarFn::kMul, {x, b.fn(ScalarFn::kSigmoid, {x})}); },
       [](double x) { return x / (1 + std::exp(-x)); }, "quick_sigmoid"});
  all.push_back(
      {"gelu",
       [](Body& b, auto x) {
         const auto wide = b.op(ir::Cast{DType::kF32}, {x});
         const auto scaled = b.fn(ScalarFn::kMul, {wide, b.scalar(0.70710678f)});
         const auto sum = b.fn(ScalarFn::kAdd, {b.fn(ScalarFn::kErf, {scaled}), b.scalar(1.0f)});
         const auto half = b.fn(ScalarFn::kMul, {wide, b.scalar(0.5f)});
         return b.op(ir::Cast{b.graph.type(x).dtype}, {b.fn(ScalarFn::kMul, {half, sum})});
       },
       // The limit, where the product itself is none.
       [](double x) { return x == -INFINITY ? 0.0 : 0.5 * x * std::erfc(-x / std::sqrt(2.0)); },
       "quick_gelu"});
  all.push_back(
      {"gelu of another scale",
       [](Body& b, auto x) {
         const auto wide = b.op(ir::Cast{DType::kF32}, {x});
         const auto sum = b.fn(ScalarFn::kAdd, {b.fn(ScalarFn::kErf, {wide}), b.scalar(1.0f)});
         return b.op(ir::Cast{b.graph.type(x).dtype}, {b.fn(ScalarFn::kMul, {wide, sum})});
       },
       [](double x) { return x * std::erfc(-x); }, "quick_one_plus_erf"});
  return all;
}

TEST(QuickFunctions, AreWithinAUnitInTheLastPlaceOnAll16BitFloats) {
  Bytes inputs(2 << 16);
  for (uint32_t i = 0; i < 1u << 16; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    std::memcpy(&inputs[size_t{i} * 2], &bits, 2);
  }
  std::vector<HostProgram::Item> items;
  std::vector<std::pair<DType, Case>> trials;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const Case& c : cases()) {
      Body b;
      b.out(c.body(b, b.in(std::string(to_string(dtype)) + "[65536]")));
      loop::LoopKernel kernel = lowered(b);
      auto source = emit_cuda(kernel, {.family = Family::kPoints, .vector = 8});
      ASSERT_TRUE(source.ok()) << source.error().message;
      EXPECT_NE(source->text.find(c.quick), std::string::npos) << c.name << source->text;
      items.push_back({std::move(kernel), *std::move(source)});
      trials.emplace_back(dtype, c);
    }
  }
  const auto program = HostProgram::compile(items);
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (size_t i = 0; i < trials.size(); ++i) {
    const auto& [dtype, c] = trials[i];
    const bool half = dtype == DType::kF16;
    const auto got = program->run(i, {inputs});
    ASSERT_TRUE(got.ok()) << got.error().message;
    double worst = 0;
    float worst_at = 0;
    for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
      const float x = as_float(dtype, static_cast<uint16_t>(bits));
      uint16_t result = 0;
      std::memcpy(&result, &got->front()[size_t{bits} * 2], 2);
      const double y = as_float(dtype, result), exact = c.exact(x);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(y)) << c.name << " of " << x;
        continue;
      }
      if (std::isinf(y) || std::isinf(exact)) {
        EXPECT_GT(std::abs(exact), half ? 65500 : 3.38e38) << c.name << " of " << x;
        EXPECT_TRUE(std::isinf(y) || std::abs(y) > (half ? 65500 : 3.38e38)) << c.name << x;
        continue;
      }
      const double unit =
          half ? unit_in_last_place(exact, 11, -24) : unit_in_last_place(exact, 8, -133);
      if (const double error = std::abs(y - exact) / unit; !(error <= worst)) {
        worst = error;
        worst_at = x;
      }
    }
    EXPECT_LE(worst, 1) << c.name << " of " << to_string(dtype) << " " << worst_at;
  }
}

TEST(QuickFunctions, MultiplyForADivisionByAConstantUnlessQuotientsAreMadeWhole) {
  const auto text = [](float divisor, bool floors) {
    Body b;
    auto y = b.fn(ScalarFn::kDiv, {b.in("f32[64]"), b.scalar(divisor)});
    if (floors) y = b.fn(ScalarFn::kFloor, {y});
    b.out(y);
    return emit_cuda(lowered(b), CudaSchedule{})->text;
  };
  const std::string divides = "op_div<f32>";
  EXPECT_NE(text(3, false).find(", 0.33333334f)"), std::string::npos);
  EXPECT_NE(text(3, true).find(divides), std::string::npos);
  EXPECT_NE(text(-8, true).find(", -0.125f)"), std::string::npos);
  EXPECT_NE(text(0, false).find(divides), std::string::npos);
  EXPECT_NE(text(1e-38f, false).find(divides), std::string::npos);
  EXPECT_NE(text(3e38f, false).find(divides), std::string::npos);
  EXPECT_NE(text(std::numeric_limits<float>::infinity(), false).find(divides), std::string::npos);
}

// An f32 result stays one: the shorter cos after a cos is as good as the library's.
TEST(QuickFunctions, KeepF32WhereF32IsStored) {
  Body b;
  auto y = b.fn(ScalarFn::kCos, {b.fn(ScalarFn::kCos, {b.in("f32[4096]")})});
  b.out(b.fn(ScalarFn::kSin, {y})).out(y);
  const loop::LoopKernel kernel = lowered(b);
  auto source = emit_cuda(kernel, {.family = Family::kPoints, .vector = 4});
  ASSERT_TRUE(source.ok()) << source.error().message;
  const auto program = HostProgram::compile({{kernel, *source}});
  ASSERT_TRUE(program.ok()) << program.error().message;
  std::vector<float> x(4096);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.00173f - 2;
  Bytes bytes(x.size() * 4);
  std::memcpy(bytes.data(), x.data(), bytes.size());
  const auto got = program->run(0, {bytes});
  ASSERT_TRUE(got.ok()) << got.error().message;
  for (size_t i = 0; i < x.size(); ++i) {
    const double inner = std::cos(std::cos(static_cast<double>(x[i])));
    float sine = 0, cosine = 0;
    std::memcpy(&sine, &(*got)[0][4 * i], 4);
    std::memcpy(&cosine, &(*got)[1][4 * i], 4);
    EXPECT_NEAR(cosine, inner, 1.5e-7) << x[i];
    EXPECT_NEAR(sine, std::sin(inner), 2e-7) << x[i];
  }
}

}  // namespace
}  // namespace kiln::codegen
