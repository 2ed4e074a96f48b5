// Our kernel for products of few rows in every tiling that it offers, against sums in f64: extents
// that no tile fills, every type of operands; the same bits in every run, with and without kernels
// that begin before the one in front of them has ended.
#include <cmath>
#include <future>
#include <random>

#include "builder/tactics/cuda/few_rows_provider.h"
#include "tests/builder/codegen/body.h"
#include "tests/builder/random_tensors.h"
#include "tests/gpu/region_fixture.h"

namespace kiln::testing {
namespace {

struct Case {
  DType dtype;
  int64_t rows, columns, depth;
  bool gated = false;  // the larger of gate + bias and up; otherwise the product plus a bias
  bool constant_weights = true;

  int64_t product_columns() const { return gated ? 2 * columns : columns; }
  // What the matmul leaves.
  DType product() const { return dtype == DType::kF8E4M3FN ? DType::kF32 : dtype; }
  DType result() const { return dtype == DType::kF8E4M3FN ? DType::kBF16 : dtype; }
};

std::string name_of(const Case& one) {
  return std::string(to_string(one.dtype)) + " " + std::to_string(one.rows) + " x " +
         std::to_string(one.columns) + " x " + std::to_string(one.depth) +
         (one.gated ? ", gated" : "") + (one.constant_weights ? "" : ", w is made");
}

// x, w, bias.
ir::Graph body_of(const Case& one) {
  codegen::Body b;
  const auto in = [&](DType dtype, Shape shape) {
    return b.in(to_string(TensorType{dtype, std::move(shape)}));
  };
  const auto wide = [&](ir::ValueId value) {
    return one.product() == DType::kF32 ? value : b.op(ir::Cast{DType::kF32}, {value});
  };
  const auto x = in(one.dtype, {one.rows, one.depth});
  const auto w = in(one.dtype, {one.product_columns(), one.depth});
  const auto product = b.op(ir::MatMul{false, true}, {x, w});
  const auto bias = in(DType::kF32, {one.columns});
  auto y = b.fn(ScalarFn::kAdd, {wide(one.gated ? b.half(product, 0) : product), bias});
  if (one.gated) y = b.fn(ScalarFn::kMax, {y, wide(b.half(product, 1))});
  b.out(one.result() == DType::kF32 ? y : b.op(ir::Cast{one.result()}, {y}));
  return std::move(b.graph);
}

std::vector<double> expected(const Case& one, const std::vector<HostTensor>& inputs) {
  std::vector<std::vector<double>> in;
  for (const HostTensor& input : inputs) in.push_back(test::to_doubles(input));
  const auto depth = static_cast<size_t>(one.depth), columns = static_cast<size_t>(one.columns);
  const auto sum = [&](size_t m, size_t n) {
    double total = 0;
    for (size_t k = 0; k < depth; ++k) total += in[0][m * depth + k] * in[1][n * depth + k];
    return total;
  };
  std::vector<double> y;
  for (size_t m = 0; m < static_cast<size_t>(one.rows); ++m) {
    for (size_t n = 0; n < columns; ++n) {
      const double first = sum(m, n) + in[2][n];
      y.push_back(one.gated ? std::max(first, sum(m, columns + n)) : first);
    }
  }
  return y;
}

class FewRows : public RegionsOnGpu {
 protected:
  static void expect_close(const Case& one, const Block& found, const std::vector<double>& want) {
    const TensorType type{one.result(), {one.rows * one.columns}};
    const auto got = test::to_doubles({type, SharedBytes::take(std::vector(found))});
    // Half a unit in the last place, and sums in f32 in another order.
    const double share = one.result() == DType::kBF16  ? 0x1p-8
                         : one.result() == DType::kF16 ? 0x1p-11
                                                       : 0x1p-24;
    const double sums = 1e-5 * std::sqrt(static_cast<double>(one.depth)) + 1e-6;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 1.1 * share * std::abs(want[i]) + sums) << "element " << i;
    }
  }

  void check_tilings(const Case& one, int runs) {
    const Trial trial = trial_of(body_of(one), one.constant_weights);
    std::string refusal;
    const auto tactics = few_rows_candidates(query(trial), refusal);
    EXPECT_FALSE(tactics.empty()) << name_of(one) << ": " << refusal;
    const auto want = expected(one, trial.inputs);
    for (const Tactic& tactic : tactics) {
      SCOPED_TRACE(name_of(one) + ", " + tactic.key);
      const auto lowered = few_rows_lower(query(trial), tactic);
      ASSERT_TRUE(lowered.ok()) << lowered.error().message;
      check(trial, *lowered, runs, [&](const Block& found) { expect_close(one, found, want); });
      if (HasFatalFailure()) return;
    }
  }
};

TEST_F(FewRows, EveryTilingAtEveryEdge) {
  for (const Case& one : {Case{DType::kBF16, 1, 1, 8}, Case{DType::kF16, 3, 1000, 2056, true},
                          Case{DType::kBF16, 8, 4104, 2048}, Case{DType::kBF16, 5, 33, 4096, true},
                          Case{DType::kF16, 16, 513, 4096, false, false},
                          Case{DType::kBF16, 32, 40, 264}, Case{DType::kF32, 8, 1001, 1028}}) {
    check_tilings(one, 1);
    if (HasFatalFailure()) return;
  }
}

TEST_F(FewRows, EightBits) {
  if (target_.device.compute_capability < 89) GTEST_SKIP() << "has no f8e4m3fn";
  for (const Case& one :
       {Case{DType::kF8E4M3FN, 1, 1008, 4096}, Case{DType::kF8E4M3FN, 8, 520, 4112, true},
        Case{DType::kF8E4M3FN, 16, 48, 4096}}) {
    check_tilings(one, 1);
    if (HasFatalFailure()) return;
  }
}

TEST_F(FewRows, SameBitsInEveryRun) {
  check_tilings({DType::kBF16, 1, 4096, 4096}, 12);
  check_tilings({DType::kBF16, 8, 4096, 4096, true}, 12);
}

}  // namespace
}  // namespace kiln::testing
