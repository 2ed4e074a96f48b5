#include "engine/host/loop/lane_functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "formats/loop_ir/scalar_type.h"

namespace kiln::host {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class Out, class... Args>
std::vector<Out> apply(ScalarFn fn, std::vector<DType> dtypes, const std::vector<Args>&... args) {
  const size_t count = std::max({args.size()...});
  std::vector<Out> out(count);
  const Operand operands[] = {Operand{args.data(), args.size() == 1 && count > 1}...};
  lane_function(fn, dtypes.data())(operands, dtypes.data(), out.data(),
                                   static_cast<int64_t>(count));
  return out;
}

std::vector<float> unary(ScalarFn fn, const std::vector<float>& x) {
  return apply<float>(fn, {DType::kF32}, x);
}

// Floats over the whole range, dense where functions turn.
std::vector<float> sample() {
  std::vector<float> x = {0.0f, -0.0f, 1e-40f, -1e-40f, 1e-30f, 88.7f, -87.4f, -103.9f};
  for (float v = -110; v < 88.7f; v += 0.013f) x.push_back(v);
  for (float v = -5; v < 5; v += 0.0007f) x.push_back(v);
  for (float v = 1e-8f; v < 1; v *= 1.3f) x.push_back(v);
  return x;
}

struct Accuracy {
  ScalarFn fn;
  double (*reference)(double);
  double relative, absolute;
};

TEST(LaneFunctions, FastFunctionsAreAccurate) {
  const Accuracy rows[] = {
      {ScalarFn::kExp, [](double x) { return std::exp(x); }, 3e-7, 1.5e-45},
      {ScalarFn::kTanh, [](double x) { return std::tanh(x); }, 1e-6, 1e-42},
      {ScalarFn::kErf, [](double x) { return std::erf(x); }, 1e-6, 3e-7},
      {ScalarFn::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 5e-7, 1e-38},
  };
  const std::vector<float> x = sample();
  for (const Accuracy& row : rows) {
    const std::vector<float> y = unary(row.fn, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = row.reference(x[i]);
      const double allowed = row.absolute + row.relative * std::fabs(want);
      ASSERT_NEAR(y[i], want, allowed) << to_string(row.fn) << "(" << x[i] << ")";
    }
  }
}

TEST(LaneFunctions, FastFunctionsKeepSpecialValues) {
  const std::vector<float> x = {kNan, kInf, -kInf, 0.0f};
  const auto expect = [&](ScalarFn fn, float at_inf, float at_minus_inf, float at_zero) {
    const std::vector<float> y = unary(fn, x);
    EXPECT_TRUE(std::isnan(y[0])) << to_string(fn);
    EXPECT_EQ(y[1], at_inf) << to_string(fn);
    EXPECT_EQ(y[2], at_minus_inf) << to_string(fn);
    EXPECT_EQ(y[3], at_zero) << to_string(fn);
  };
  expect(ScalarFn::kExp, kInf, 0, 1);
  expect(ScalarFn::kSigmoid, 1, 0, 0.5f);
  expect(ScalarFn::kTanh, 1, -1, 0);
  expect(ScalarFn::kErf, 1, -1, 0);
  EXPECT_EQ(unary(ScalarFn::kExp, {100.0f})[0], kInf);
  EXPECT_EQ(unary(ScalarFn::kExp, {-200.0f})[0], 0.0f);
  EXPECT_EQ(unary(ScalarFn::kTanh, {20.0f})[0], 1.0f);
  EXPECT_EQ(unary(ScalarFn::kErf, {-20.0f})[0], -1.0f);
}

TEST(LaneFunctions, FloatsFollowOnnx) {
  EXPECT_EQ(unary(ScalarFn::kRound, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1e9f}),
            (std::vector<float>{0, 2, 2, 0, -2, 1e9f}));
  EXPECT_EQ(unary(ScalarFn::kFloor, {-0.5f, 2.7f}), (std::vector<float>{-1, 2}));
  EXPECT_EQ(unary(ScalarFn::kSign, {-3.0f, 0.0f, 2.0f}), (std::vector<float>{-1, 0, 1}));
  const std::vector<DType> two = {DType::kF32, DType::kF32};
  const std::vector<float> a = {7, -7, 7, -7}, b = {3, 3, -3, -3};
  EXPECT_EQ(apply<float>(ScalarFn::kMod, two, a, b), (std::vector<float>{1, 2, -2, -1}));
  EXPECT_EQ(apply<float>(ScalarFn::kFmod, two, a, b), (std::vector<float>{1, -1, 1, -1}));
  const std::vector<float> c = {kNan, 1}, d = {1, kNan};
  for (const ScalarFn fn : {ScalarFn::kMin, ScalarFn::kMax}) {
    for (const float v : apply<float>(fn, two, c, d)) EXPECT_TRUE(std::isnan(v));
  }
  EXPECT_EQ(apply<uint8_t>(ScalarFn::kLess, two, c, d), (std::vector<uint8_t>{0, 0}));
  EXPECT_EQ(apply<uint8_t>(ScalarFn::kGreaterEqual, two, c, d), (std::vector<uint8_t>{0, 0}));
  EXPECT_EQ(apply<float>(ScalarFn::kPow, two, std::vector<float>{3, -2, 4}, std::vector<float>{2}),
            (std::vector<float>{9, 4, 16}));
}

TEST(LaneFunctions, UniformOperandsStandForAllLanes) {
  const std::vector<DType> two = {DType::kF32, DType::kF32};
  const std::vector<float> one = {10}, many = {1, 2, 3};
  EXPECT_EQ(apply<float>(ScalarFn::kSub, two, one, many), (std::vector<float>{9, 8, 7}));
  EXPECT_EQ(apply<float>(ScalarFn::kSub, two, many, one), (std::vector<float>{-9, -8, -7}));
  const std::vector<DType> where = {DType::kBool, DType::kF32, DType::kF32};
  const std::vector<uint8_t> condition = {1, 0, 1}, yes = {1};
  EXPECT_EQ(apply<float>(ScalarFn::kWhere, where, condition, one, many),
            (std::vector<float>{10, 2, 10}));
  EXPECT_EQ(apply<float>(ScalarFn::kWhere, where, condition, many, one),
            (std::vector<float>{1, 10, 3}));
  EXPECT_EQ(apply<float>(ScalarFn::kWhere, where, yes, many, many), many);
}

TEST(LaneFunctions, IntegersWrapAndNeverTrap) {
  const int64_t min = std::numeric_limits<int64_t>::min(), max = ~min;
  const auto i64 = [](ScalarFn fn, int64_t a, int64_t b, DType dtype = DType::kI64) {
    return apply<int64_t>(fn, {dtype, dtype}, std::vector<int64_t>{a}, std::vector<int64_t>{b})[0];
  };
  EXPECT_EQ(i64(ScalarFn::kAdd, max, 1), min);
  EXPECT_EQ(i64(ScalarFn::kAdd, 127, 1, DType::kI8), -128);
  EXPECT_EQ(i64(ScalarFn::kSub, 0, 1, DType::kU8), 255);
  EXPECT_EQ(i64(ScalarFn::kMul, 65536, 65536, DType::kI32), 0);
  EXPECT_EQ(i64(ScalarFn::kDiv, min, -1), min);
  EXPECT_EQ(i64(ScalarFn::kDiv, -128, -1, DType::kI8), -128);
  EXPECT_EQ(i64(ScalarFn::kDiv, -7, 2), -3);
  EXPECT_EQ(i64(ScalarFn::kDiv, 5, 0), 0);
  EXPECT_EQ(i64(ScalarFn::kDiv, -1, 2, DType::kU64), max);
  EXPECT_EQ(i64(ScalarFn::kMod, -7, 3), 2);
  EXPECT_EQ(i64(ScalarFn::kMod, 7, -3), -2);
  EXPECT_EQ(i64(ScalarFn::kFmod, -7, 3), -1);
  EXPECT_EQ(i64(ScalarFn::kMod, min, -1), 0);
  EXPECT_EQ(i64(ScalarFn::kMod, 1, 0), 0);
  EXPECT_EQ(i64(ScalarFn::kMax, -1, 1, DType::kU64), -1);
  EXPECT_EQ(i64(ScalarFn::kPow, 2, 10), 1024);
  EXPECT_EQ(i64(ScalarFn::kPow, 2, -1), 0);
  EXPECT_EQ(i64(ScalarFn::kPow, -1, -3), -1);
  EXPECT_EQ(i64(ScalarFn::kPow, 3, 5, DType::kU8), 243);
  EXPECT_EQ(i64(ScalarFn::kPow, 3, 6, DType::kU8), 729 % 256);
  EXPECT_EQ(i64(ScalarFn::kShiftLeft, 0xC3, 1, DType::kU8), 0x86);
  EXPECT_EQ(i64(ScalarFn::kShiftRight, 0xC3, 7, DType::kU8), 1);
  EXPECT_EQ(i64(ScalarFn::kShiftLeft, 1, 200, DType::kU64), 0);
  const auto one = [](ScalarFn fn, int64_t a, DType dtype) {
    return apply<int64_t>(fn, {dtype}, std::vector<int64_t>{a})[0];
  };
  EXPECT_EQ(one(ScalarFn::kAbs, -128, DType::kI8), -128);
  EXPECT_EQ(one(ScalarFn::kNeg, 1, DType::kU16), 65535);
  EXPECT_EQ(one(ScalarFn::kBitNot, 5, DType::kU8), 250);
  EXPECT_EQ(one(ScalarFn::kSign, -1, DType::kU64), 1);
}

TEST(LaneFunctions, EveryFunctionThatTypesAllowHasLoops) {
  for (int f = 0; f < kScalarFnCount; ++f) {
    const auto fn = static_cast<ScalarFn>(f);
    for (int d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      std::vector<DType> types(static_cast<size_t>(arity(fn)), dtype);
      if (fn == ScalarFn::kWhere) types[0] = DType::kBool;
      if (!result_type(fn, types)) continue;
      EXPECT_NE(lane_function(fn, types.data()), nullptr)
          << to_string(fn) << " of " << to_string(dtype);
    }
  }
}

// --- reductions ---

template <class T>
T reduce_block(ReduceFn fn, DType dtype, const std::vector<T>& x) {
  const Reduction row = reduction(fn, dtype);
  uint64_t accumulator = 0;
  T result{};
  row.start(&accumulator, 1);
  row.add_block(&accumulator, {x.data(), false}, static_cast<int64_t>(x.size()));
  row.finish(&accumulator, dtype, &result, 1);
  return result;
}

TEST(LaneReductions, LongSumsOfFloatsStayAccurate) {
  const std::vector<float> x(1000003, 0.1f);
  EXPECT_NEAR(reduce_block(ReduceFn::kSum, DType::kF32, x), 100000.3, 0.02);
  std::vector<float> cancels = {1e8f};
  for (int i = 0; i < 1000; ++i) cancels.push_back(1.0f);
  cancels.push_back(-1e8f);
  EXPECT_NEAR(reduce_block(ReduceFn::kSum, DType::kF32, cancels), 1000.0f, 64.0f);
}

TEST(LaneReductions, NanWinsWhereverItStands) {
  for (const size_t at : {0, 5, 17, 300, 399}) {
    std::vector<float> x(400, 1.0f);
    x[at] = kNan;
    EXPECT_TRUE(std::isnan(reduce_block(ReduceFn::kMax, DType::kF32, x))) << at;
    EXPECT_TRUE(std::isnan(reduce_block(ReduceFn::kMin, DType::kF32, x))) << at;
  }
}

TEST(LaneReductions, WithoutElementsYieldTheIdentity) {
  EXPECT_EQ(reduce_block<float>(ReduceFn::kSum, DType::kF32, {}), 0);
  EXPECT_EQ(reduce_block<float>(ReduceFn::kProd, DType::kF32, {}), 1);
  EXPECT_EQ(reduce_block<float>(ReduceFn::kMax, DType::kF32, {}), -kInf);
  EXPECT_EQ(reduce_block<double>(ReduceFn::kMin, DType::kF64, {}), kInf);
  EXPECT_EQ(reduce_block<int64_t>(ReduceFn::kMax, DType::kI8, {}), -128);
  EXPECT_EQ(reduce_block<int64_t>(ReduceFn::kMax, DType::kU8, {}), 0);
  EXPECT_EQ(reduce_block<int64_t>(ReduceFn::kMin, DType::kU8, {}), 255);
  EXPECT_EQ(reduce_block<uint8_t>(ReduceFn::kAll, DType::kBool, {}), 1);
  EXPECT_EQ(reduce_block<uint8_t>(ReduceFn::kAny, DType::kBool, {}), 0);
}

TEST(LaneReductions, IntegersWrap) {
  EXPECT_EQ(reduce_block<int64_t>(ReduceFn::kSum, DType::kI8, {100, 100}), -56);
  EXPECT_EQ(reduce_block<int64_t>(ReduceFn::kProd, DType::kU8, {16, 17}), 16);
  EXPECT_EQ(reduce_block<int64_t>(ReduceFn::kMax, DType::kU64, {1, -1}), -1);
  EXPECT_EQ(reduce_block<int64_t>(ReduceFn::kMax, DType::kI64, {1, -1}), 1);
}

}  // namespace
}  // namespace kiln::host
