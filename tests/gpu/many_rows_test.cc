// Our kernel for products of many rows in every tiling, against sums in f64: extents that no tile
// fills, each kind of epilogue, both types; the same bits in every run, with and without kernels
// that begin before the one in front of them has ended.
#include <cmath>
#include <future>
#include <random>

#include "builder/kernels/many_rows_kernel.h"
#include "builder/tactics/cuda/many_rows_provider.h"
#include "tests/builder/codegen/body.h"
#include "tests/builder/random_tensors.h"
#include "tests/gpu/region_fixture.h"

namespace kiln::testing {
namespace {

enum class End { kNothing, kBias, kGelu, kResidual, kRowFactor, kSwiglu, kScales };
constexpr End kEnds[] = {End::kNothing,  End::kBias,      End::kGelu,
                         End::kResidual, End::kRowFactor, End::kSwiglu};

struct Case {
  DType dtype;
  int64_t rows, columns, depth;
  End end = End::kNothing;
  bool constant_weights = true;
  DType result = dtype;

  bool is_e4m3() const { return dtype == DType::kF8E4M3FN; }
  int64_t product_columns() const { return end == End::kSwiglu ? 2 * columns : columns; }
};

std::string name_of(const Case& one) {
  return std::string(to_string(one.dtype)) + " " + std::to_string(one.rows) + " x " +
         std::to_string(one.columns) + " x " + std::to_string(one.depth) + ", end " +
         std::to_string(static_cast<int>(one.end)) + ", as " + std::string(to_string(one.result)) +
         (one.constant_weights ? "" : ", w is made");
}

// x, w, then what the end needs.
ir::Graph body_of(const Case& one) {
  codegen::Body b;
  const std::string type(to_string(one.dtype));
  const auto in = [&](const std::string& t, Shape shape) {
    return b.in(to_string(TensorType{parse_tensor_type(t + "[]").value().dtype, std::move(shape)}));
  };
  const auto x = in(type, {one.rows, one.depth}), w = in(type, {one.product_columns(), one.depth});
  const auto product = b.op(ir::MatMul{false, true}, {x, w});
  const auto wide = [&](ir::ValueId value) { return b.op(ir::Cast{DType::kF32}, {value}); };
  const auto narrow = [&](ir::ValueId value) { return b.op(ir::Cast{one.result}, {value}); };
  if (one.end == End::kScales) {
    const auto scaled = b.fn(ScalarFn::kMul, {wide(product), in("f32", {one.columns})});
    const auto y = b.fn(ScalarFn::kMul, {scaled, b.scalar(0.75f)});
    b.out(one.result == DType::kF32 ? y : narrow(y));
    return std::move(b.graph);
  }
  if (one.end == End::kNothing) {
    b.out(product);
    return std::move(b.graph);
  }
  if (one.end == End::kSwiglu) {
    b.out(narrow(b.swiglu(wide(product))));
    return std::move(b.graph);
  }
  if (one.end == End::kRowFactor) {
    const auto scaled = b.fn(ScalarFn::kMul, {wide(product), in("f32", {one.rows, 1})});
    const auto sum = b.fn(ScalarFn::kAdd, {scaled, in("f32", {one.rows, one.columns})});
    b.out(narrow(b.fn(ScalarFn::kMax, {sum, b.scalar(0.0f)})));
    return std::move(b.graph);
  }
  auto y = b.fn(ScalarFn::kAdd, {wide(product), wide(in(type, {one.columns}))});
  if (one.end == End::kResidual) {
    y = b.fn(ScalarFn::kAdd, {y, wide(in(type, {one.rows, one.columns}))});
  } else if (one.end == End::kGelu) {
    const auto erf = b.fn(ScalarFn::kErf, {b.fn(ScalarFn::kMul, {y, b.scalar(0.70710678f)})});
    const auto half = b.fn(ScalarFn::kMul, {y, b.scalar(0.5f)});
    y = b.fn(ScalarFn::kMul, {half, b.fn(ScalarFn::kAdd, {erf, b.scalar(1.0f)})});
  }
  b.out(narrow(y));
  return std::move(b.graph);
}

// `up`: the sum of the other half.
double finished(End end, double sum, double up, const std::vector<std::vector<double>>& in,
                size_t row, size_t column, size_t at) {
  switch (end) {
    case End::kNothing:
      return sum;
    case End::kBias:
      return sum + in[2][column];
    case End::kGelu: {
      const double y = sum + in[2][column];
      return 0.5 * y * std::erfc(-y * std::sqrt(0.5));
    }
    case End::kResidual:
      return sum + in[2][column] + in[3][at];
    case End::kRowFactor:
      return std::max(sum * in[2][row] + in[3][at], 0.0);
    case End::kScales:
      return sum * in[2][column] * 0.75;
    case End::kSwiglu:
      return sum / (1 + std::exp(-sum)) * up;
  }
  return 0;
}

std::vector<double> expected(const Case& one, const std::vector<HostTensor>& inputs) {
  std::vector<std::vector<double>> in;
  for (const HostTensor& input : inputs) in.push_back(test::to_doubles(input));
  const auto depth = static_cast<size_t>(one.depth);
  const auto columns = static_cast<size_t>(one.columns);
  const auto sum = [&](size_t m, size_t n) {
    double total = 0;
    for (size_t k = 0; k < depth; ++k) total += in[0][m * depth + k] * in[1][n * depth + k];
    return total;
  };
  std::vector<double> y;
  for (size_t m = 0; m < static_cast<size_t>(one.rows); ++m) {
    for (size_t n = 0; n < columns; ++n) {
      const double up = one.end == End::kSwiglu ? sum(m, columns + n) : 0;
      const double made = finished(one.end, sum(m, n), up, in, m, n, y.size());
      y.push_back(one.result == DType::kF8E4M3FN ? std::clamp(made, -448.0, 448.0) : made);
    }
  }
  return y;
}

class ManyRows : public RegionsOnGpu {
 protected:
  void SetUp() override {
    RegionsOnGpu::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (target_.device.compute_capability != 90) GTEST_SKIP() << "is for compute capability 9.0";
  }

  struct Problem {
    Case one;
    Trial trial;
    std::vector<ManyRowsTiling> tilings;
    std::vector<std::future<Result<Lowered>>> lowered;  // by tiling
  };

  // Compiles in the background.
  std::unique_ptr<Problem> begin(const Case& one) {
    auto problem = std::make_unique<Problem>();
    problem->one = one;
    problem->trial = trial_of(body_of(one), one.constant_weights);
    for (const ManyRowsTiling& tiling : all_many_rows_tilings()) {
      const ManyRowsShape shape{one.dtype, one.rows, one.columns,
                                one.depth, true,     one.end == End::kSwiglu ? 2 : 1,
                                one.result};
      if (!takes(tiling, shape)) continue;
      problem->tilings.push_back(tiling);
    }
    for (const ManyRowsTiling& tiling : problem->tilings) {
      problem->lowered.push_back(std::async(std::launch::async, [this, &tiling, p = problem.get()] {
        return many_rows_lower(query(p->trial), {to_string(tiling)});
      }));
    }
    return problem;
  }

  static void expect_close(const Problem& problem, const ManyRowsTiling& tiling, const Block& found,
                           const std::vector<double>& want) {
    const Case& one = problem.one;
    const TensorType type{one.result, {one.rows * one.columns}};
    const auto got = test::to_doubles({type, SharedBytes::take(std::vector(found))});
    // Half a unit in the last place, the functions for 16 bits, and sums in f32.
    const double share = one.result == DType::kF16    ? 0x1p-11
                         : one.result == DType::kBF16 ? 0x1p-8
                         : one.result == DType::kF32  ? 0
                                                      : 0x1p-4;
    // Tensor cores cut off what 13 bits cannot hold of each sum, 32 elements of 8 bits at a time.
    const double cuts = tiling.in_steps ? 4 : std::ceil(static_cast<double>(one.depth) / 32);
    const double cut = one.is_e4m3() ? cuts * 0x1p-13 : 0;
    const double size = std::sqrt(static_cast<double>(one.depth));  // of a sum
    const double factor = one.end == End::kSwiglu ? 1 + size : one.end == End::kScales ? 3 : 1;
    const double sums = ((1e-5 + cut) * size + 1e-6) * factor;
    const double least = one.result == DType::kF8E4M3FN ? 0x1p-10 : 0;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], (1.1 * share + 1e-4) * std::abs(want[i]) + sums + least)
          << "element " << i;
    }
  }

  void check_tilings(Problem& problem, int runs) {
    const auto want = expected(problem.one, problem.trial.inputs);
    for (size_t t = 0; t < problem.lowered.size(); ++t) {
      SCOPED_TRACE(name_of(problem.one) + ", " + to_string(problem.tilings[t]));
      const auto lowered = problem.lowered[t].get();
      ASSERT_TRUE(lowered.ok()) << lowered.error().message;
      check(problem.trial, *lowered, runs,
            [&](const Block& found) { expect_close(problem, problem.tilings[t], found, want); });
      if (HasFatalFailure()) return;
    }
  }
};

TEST_F(ManyRows, EveryTilingAndEndAtEveryEdge) {
  constexpr int64_t kExtents[][3] = {{1, 8, 8},      {129, 1000, 200}, {200, 512, 64},
                                     {1000, 8, 520}, {1000, 136, 72},  {33, 264, 4096},
                                     {193, 1000, 8}, {64, 128, 128}};
  std::vector<std::unique_ptr<Problem>> problems;
  size_t count = 0;
  for (const auto& [rows, columns, depth] : kExtents) {
    for (int turn = 0; turn < 2; ++turn, ++count) {
      problems.push_back(begin({count % 3 == 1 ? DType::kF16 : DType::kBF16, rows, columns, depth,
                                kEnds[count % std::size(kEnds)], count % 4 != 3}));
    }
  }
  // Halves that tiles do and do not fill.
  for (const auto& [rows, columns, depth] :
       {std::array<int64_t, 3>{1, 8, 8}, {129, 200, 520}, {200, 1000, 64}, {300, 128, 264}}) {
    problems.push_back(begin({DType::kBF16, rows, columns, depth, End::kSwiglu}));
  }
  for (const auto& problem : problems) check_tilings(*problem, 1);
}

TEST_F(ManyRows, ProductsOfBytesAndResultsOfEverySize) {
  constexpr int64_t kExtents[][3] = {{1, 16, 16},     {129, 1008, 208}, {200, 512, 128},
                                     {1000, 16, 528}, {33, 272, 4096},  {65, 128, 1024}};
  constexpr DType kResults[] = {DType::kF32, DType::kBF16, DType::kF8E4M3FN};
  std::vector<std::unique_ptr<Problem>> problems;
  for (const auto& [rows, columns, depth] : kExtents) {
    for (const DType result : kResults) {
      const bool constant = (rows + bits_of(result)) % 3 != 0;
      problems.push_back(
          begin({DType::kF8E4M3FN, rows, columns, depth, End::kScales, constant, result}));
    }
  }
  for (const auto& [rows, columns, depth] : {std::array<int64_t, 3>{1, 16, 16}, {200, 208, 528}}) {
    problems.push_back(
        begin({DType::kF8E4M3FN, rows, columns, depth, End::kSwiglu, true, DType::kF8E4M3FN}));
  }
  for (const DType result : {DType::kF32, DType::kF8E4M3FN}) {
    problems.push_back(begin({DType::kBF16, 129, 208, 136, End::kScales, true, result}));
  }
  for (const auto& problem : problems) check_tilings(*problem, 1);
}

TEST_F(ManyRows, SameBitsInEveryRun) {
  const auto gelu = begin({DType::kBF16, 1000, 1024, 520, End::kGelu});
  const auto residual = begin({DType::kF16, 1000, 1024, 520, End::kResidual, false});
  const auto swiglu = begin({DType::kBF16, 1000, 1032, 520, End::kSwiglu});
  const auto bytes = begin({DType::kF8E4M3FN, 1000, 1024, 1040, End::kScales, true, DType::kF32});
  check_tilings(*gelu, 12);
  check_tilings(*swiglu, 12);
  check_tilings(*bytes, 12);
  check_tilings(*residual, 12);
}

}  // namespace
}  // namespace kiln::testing
