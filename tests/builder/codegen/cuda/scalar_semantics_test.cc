// Every scalar function and every cast on every type means in device code what it means on the
// host, on the values where meanings part: ends of ranges, ties, infinities, NaN, division by zero.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "builder/codegen/cuda/compile.h"
#include "builder/codegen/cuda/emit_cuda.h"
#include "engine/host/dtype_conversion.h"
#include "formats/loop_ir/scalar_type.h"
#include "tests/builder/codegen/cuda/run_on_host.h"

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using loop::LoopKernel;
using Kind = Expr::Kind;

Bytes bytes_of(DType dtype, const std::vector<double>& values) {
  Bytes bytes((values.size() * static_cast<size_t>(bits_of(dtype)) + 7) / 8);
  host::convert(DType::kF64, values.data(), dtype, bytes.data(),
                static_cast<int64_t>(values.size()));
  return bytes;
}

std::vector<double> interesting(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (is_float(dtype)) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const double nan = std::nan("");
    return {0,    -0.0,  0.25, -0.25, 0.5,  -0.5,   1,    -1,    1.5,   2,     -2,   2.5,
            -2.5, 3,     -3.7, 7,     20.3, -20.3,  88.9, -104,  300,   -1e4,  1e10, 3e38,
            1e-5, 1e-39, kInf, -kInf, nan,  1.0001, 1e-7, 0.999, 5e-45, -1e-30};
  }
  const int bits = bits_of(dtype);
  const double high = std::ldexp(1.0, is_signed_integer(dtype) ? bits - 1 : bits) - 1;
  // Beyond 2^53 a double holds no odd number: one below the end stands for the end.
  const double top = bits == 64 ? std::ldexp(high, 0) * (1 - 0x1p-53) : high;
  std::vector<double> values{0, 1, 2, 3, 5, 7, top, top - 1};
  if (bits > 4) values.insert(values.end(), {31, 33, 63, 65, 100});
  if (is_signed_integer(dtype)) values.insert(values.end(), {-1, -2, -3, -7, -high - 1});
  // An even number: 4-bit results fill whole bytes.
  if (values.size() % 2 != 0) values.push_back(6);
  return values;
}

class KernelBuilder {
 public:
  uint32_t dim(size_t extent) {
    kernel.dims.push_back({static_cast<int64_t>(extent), false});
    return static_cast<uint32_t>(kernel.dims.size() - 1);
  }
  ExprId load(DType dtype, uint32_t dim) {
    Expr e{.kind = Kind::kLoad, .dtype = dtype};
    e.buffer = static_cast<uint32_t>(kernel.buffers.size());
    e.map.terms.push_back({dim, 1, 0, 1});
    kernel.buffers.push_back({dtype, kernel.dims[dim].extent, false});
    return add(std::move(e));
  }
  ExprId add(Expr e) {
    kernel.exprs.push_back(std::move(e));
    return static_cast<ExprId>(kernel.exprs.size() - 1);
  }
  // Adds an output of every point for each; call last.
  void store(const std::vector<ExprId>& values) {
    for (const ExprId value : values) {
      Expr e{.kind = Kind::kStore, .dtype = kernel.exprs[value].dtype};
      e.args = {value};
      e.buffer = static_cast<uint32_t>(kernel.buffers.size());
      e.saturate = kernel.exprs[value].saturate;
      int64_t points = 1;
      for (size_t d = kernel.dims.size(); d-- > 0;) {
        e.map.terms.push_back({static_cast<uint32_t>(d), 1, 0, points});
        points *= kernel.dims[d].extent;
      }
      kernel.buffers.push_back({e.dtype, points, true});
      kernel.exprs.push_back(std::move(e));
    }
  }
  LoopKernel kernel;
};

struct Trial {
  std::string name;
  LoopKernel kernel;
  std::vector<Bytes> inputs;
  std::vector<std::string> outputs;  // what each is
};

// All functions that take these types, of all pairs of values.
Trial functions_of(DType a, DType b) {
  KernelBuilder k;
  const std::vector<double> left = interesting(a), right = interesting(b);
  const uint32_t d0 = k.dim(left.size()), d1 = k.dim(right.size());
  const ExprId x = k.load(a, d0), y = k.load(b, d1);
  Expr test{.kind = Kind::kApply, .dtype = DType::kBool, .fn = ScalarFn::kEqual};
  test.args = {x, x};
  const ExprId self = k.add(test);
  Trial trial{std::string(to_string(a)) + ", " + std::string(to_string(b)), {}, {}, {}};
  std::vector<ExprId> results;
  for (uint8_t f = 0; f < kScalarFnCount; ++f) {
    const auto fn = static_cast<ScalarFn>(f);
    std::vector<ExprId> args{x, y};
    if (arity(fn) == 1) args = {x};
    if (arity(fn) == 3) args = {self, x, y};
    std::vector<DType> types;
    for (const ExprId arg : args) types.push_back(k.kernel.exprs[arg].dtype);
    const auto type = result_type(fn, types);
    if (!type || (a != b && fn != ScalarFn::kPow)) continue;
    // The host takes exponents of 2^63 and more for negative ones.
    if (fn == ScalarFn::kPow && b == DType::kU64) continue;
    Expr e{.kind = Kind::kApply, .dtype = *type, .fn = fn};
    e.args = args;
    results.push_back(k.add(e));
    trial.outputs.emplace_back(to_string(fn));
  }
  k.store(results);
  trial.kernel = std::move(k.kernel);
  trial.inputs = {bytes_of(a, left), bytes_of(b, right)};
  return trial;
}

Trial casts_of(DType from, Bytes values, size_t count) {
  KernelBuilder k;
  const ExprId x = k.load(from, k.dim(count));
  Trial trial{"casts of " + std::string(to_string(from)), {}, {}, {}};
  std::vector<ExprId> results;
  for (uint8_t to = 0; to < kDTypeCount; ++to) {
    for (const bool saturate : {true, false}) {
      Expr e{.kind = Kind::kCast, .dtype = static_cast<DType>(to)};
      e.saturate = saturate;
      e.args = {x};
      results.push_back(k.add(e));
      trial.outputs.push_back("cast to " + std::string(to_string(static_cast<DType>(to))) +
                              (saturate ? "" : ", wrapping"));
    }
  }
  k.store(results);
  trial.kernel = std::move(k.kernel);
  trial.inputs = {std::move(values)};
  return trial;
}

double tolerance_of(DType dtype) {
  if (dtype == DType::kF32) return 2e-6;
  if (dtype == DType::kF64) return 1e-12;
  if (dtype == DType::kF16) return 1.0 / 1024;
  if (dtype == DType::kBF16) return 1.0 / 128;
  return is_float(dtype) ? 0.25 : 0;  // 8 bits: the next number
}

void expect_same(std::vector<Trial> trials, bool exact) {
  std::vector<HostProgram::Item> items;
  for (const Trial& trial : trials) {
    const auto sound = loop::verify(trial.kernel);
    ASSERT_TRUE(sound.ok()) << trial.name << ": " << sound.error().message;
    auto source = emit_cuda(trial.kernel, CudaSchedule{});
    ASSERT_TRUE(source.ok()) << source.error().message;
    items.push_back({trial.kernel, *std::move(source)});
  }
  const auto program = HostProgram::compile(items);
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (size_t i = 0; i < trials.size(); ++i) {
    const auto got = program->run(i, trials[i].inputs);
    const auto want = interpret(trials[i].kernel, trials[i].inputs);
    ASSERT_TRUE(got.ok() && want.ok()) << trials[i].name;
    size_t o = 0;
    for (const loop::Buffer& buffer : trials[i].kernel.buffers) {
      if (!buffer.output) continue;
      const double tolerance = exact ? 0 : tolerance_of(buffer.dtype);
      EXPECT_EQ(difference(buffer.dtype, (*got)[o], (*want)[o], tolerance), "")
          << trials[i].outputs[o] << " of " << trials[i].name;
      ++o;
    }
  }
}

TEST(DeviceScalars, FunctionsOfEveryType) {
  std::vector<Trial> trials;
  for (uint8_t d = 0; d < kDTypeCount; ++d) {
    trials.push_back(functions_of(static_cast<DType>(d), static_cast<DType>(d)));
  }
  for (const auto& [base, exponent] :
       std::vector<std::pair<DType, DType>>{{DType::kF32, DType::kI64},
                                            {DType::kF16, DType::kF32},
                                            {DType::kI32, DType::kF32},
                                            {DType::kU8, DType::kI32},
                                            {DType::kF64, DType::kI32},
                                            {DType::kI64, DType::kF64}}) {
    trials.push_back(functions_of(base, exponent));
  }
  expect_same(std::move(trials), false);
}

// 1 + erf(x) is a factor of x in GELU: beyond the last x whose result is not 1, nothing may be
// left.
TEST(DeviceScalars, TanhAndErfEndAtOne) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<double> far{9.1, 10, 20, 1e4, 3e38, kInf, -9.1, -10, -20, -1e4, -3e38, -kInf};
  KernelBuilder k;
  const ExprId x = k.load(DType::kF32, k.dim(far.size()));
  std::vector<ExprId> results;
  for (const ScalarFn fn : {ScalarFn::kTanh, ScalarFn::kErf}) {
    Expr e{.kind = Kind::kApply, .dtype = DType::kF32, .fn = fn};
    e.args = {x};
    results.push_back(k.add(e));
  }
  k.store(results);
  auto source = emit_cuda(k.kernel, CudaSchedule{});
  ASSERT_TRUE(source.ok()) << source.error().message;
  const auto program = HostProgram::compile({{k.kernel, *std::move(source)}});
  ASSERT_TRUE(program.ok()) << program.error().message;
  const auto got = program->run(0, {bytes_of(DType::kF32, far)});
  ASSERT_TRUE(got.ok()) << got.error().message;
  for (size_t output = 0; output < 2; ++output) {
    for (size_t i = 0; i < far.size(); ++i) {
      float y = 0;
      std::memcpy(&y, (*got)[output].data() + i * sizeof(y), sizeof(y));
      EXPECT_EQ(y, far[i] < 0 ? -1.0f : 1.0f) << far[i];
    }
  }
}

TEST(DeviceScalars, CastsOfInterestingValues) {
  std::vector<Trial> trials;
  for (uint8_t d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    std::vector<double> values = interesting(dtype);
    if (is_float(dtype)) values.insert(values.end(), {127.5, -128.5, 255.5, 65519, 65520, -9.9});
    trials.push_back(casts_of(dtype, bytes_of(dtype, values), values.size()));
  }
  expect_same(std::move(trials), true);
}

// All values of the narrow floats; among f16's are all ties of the 8-bit ones.
TEST(DeviceScalars, CastsOfAllNarrowFloats) {
  std::vector<Trial> trials;
  for (const DType dtype : {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2,
                            DType::kF8E5M2FNUZ, DType::kF16, DType::kBF16}) {
    const size_t count = size_t{1} << bits_of(dtype);
    Bytes values(count * static_cast<size_t>(bits_of(dtype)) / 8);
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(&values[i * values.size() / count], &i, values.size() / count);
    }
    trials.push_back(casts_of(dtype, std::move(values), count));
  }
  expect_same(std::move(trials), true);
}

TEST(DeviceScalars, CastsOfRandomBits) {
  std::vector<Trial> trials;
  std::mt19937_64 random(3);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kU64}) {
    Bytes values(16384);
    for (size_t i = 0; i < values.size(); i += 8) {
      const uint64_t bits = random();
      std::memcpy(&values[i], &bits, 8);
    }
    const size_t count = values.size() * 8 / static_cast<size_t>(bits_of(dtype));
    trials.push_back(casts_of(dtype, std::move(values), count));
  }
  expect_same(std::move(trials), true);
}

TEST(DeviceScalars, CompileForTheGpu) {
  if (!compiler_version().ok()) GTEST_SKIP() << compiler_version().error().message;
  for (uint8_t d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const std::vector<double> values = interesting(dtype);
    for (const Trial& trial :
         {functions_of(dtype, dtype), casts_of(dtype, bytes_of(dtype, values), values.size())}) {
      const auto source = emit_cuda(trial.kernel, CudaSchedule{});
      ASSERT_TRUE(source.ok());
      const auto cubin = compile_cuda(source->text, "sm_90a");
      ASSERT_TRUE(cubin.ok()) << trial.name << ": " << cubin.error().message;
    }
  }
}

}  // namespace
}  // namespace kiln::codegen
