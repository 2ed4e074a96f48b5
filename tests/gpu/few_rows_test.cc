// Our kernel for products of few rows in every tiling that it offers, against sums in f64: extents
// that no tile fills, every type of operands; the same bits in every run, with and without kernels
// that begin before the one in front of them has ended.
#include <cmath>
#include <future>
#include <random>

#include "builder/cuda/cuda_target.h"
#include "builder/emit/emit_plan.h"
#include "builder/tactics/cuda/few_rows_provider.h"
#include "formats/engine_file/write_engine.h"
#include "tests/builder/codegen/body.h"
#include "tests/builder/random_tensors.h"
#include "tests/gpu/gpu_fixture.h"

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

class FewRows : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    auto target = open_cuda_target(0);
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = *std::move(target);
  }

  struct Problem {
    Case one;
    ir::Region region;
    std::vector<HostTensor> inputs;
    std::vector<Tactic> tactics;
  };

  TacticQuery query(const Problem& problem) {
    TacticQuery query{problem.region, {}, {}, {}, target_.device, {}, &target_.tools};
    const ir::Graph& body = *problem.region.body;
    for (ir::ValueId id : body.inputs()) query.inputs.push_back(body.type(id));
    for (ir::ValueId id : body.outputs()) query.outputs.push_back(body.type(id));
    query.constants.resize(query.inputs.size());
    if (problem.one.constant_weights) query.constants[1] = problem.inputs[1].bytes;
    return query;
  }

  Problem problem_of(const Case& one) {
    Problem problem;
    problem.one = one;
    auto body = std::make_shared<ir::Graph>(body_of(one));
    problem.inputs = test::random_inputs(*body, 23);
    problem.region = {ir::Region::Kind::kContraction, std::move(body), {}, ""};
    std::string refusal;
    problem.tactics = few_rows_candidates(query(problem), refusal);
    EXPECT_FALSE(problem.tactics.empty()) << name_of(one) << ": " << refusal;
    return problem;
  }

  // The region twice, so that the second may begin before the first has ended: y0 and y1.
  static Result<Engine> engine_of(const Problem& problem, const Lowered& lowered, bool overlap) {
    Schedule schedule;
    schedule.point.name = "p";
    ir::Graph& graph = schedule.graph;
    std::vector<ir::ValueId> arguments;
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      const HostTensor& input = problem.inputs[i];
      arguments.push_back(problem.one.constant_weights && i == 1
                              ? graph.add_constant("w", input.type, input.bytes)
                              : graph.add_input("x" + std::to_string(i), input.type));
    }
    const ir::Graph& body = *problem.region.body;
    const TensorType made = body.type(body.outputs()[0]);
    for (size_t i = 0; i < 2; ++i) {
      const ir::NodeId node =
          graph.add_typed_node("region", {}, problem.region, arguments, std::span(&made, 1));
      graph.mark_output(graph.result(node));
      graph.set_output_name(i, "y" + std::to_string(i));
      schedule.regions.push_back({node, "region", false, lowered});
    }
    PlanBuilder builder(256);
    builder.add_point(schedule);
    plan::Plan plan = std::move(builder).finish();
    plan.origin.target = plan::Target::kCuda;
    KILN_ASSIGN_OR_RETURN(auto bytes, to_bytes(plan));
    LoadOptions options;
    options.allow_unverified = true;
    options.programmatic_launch = overlap;
    return Engine::load_bytes(SharedBytes::take(std::move(bytes)), options);
  }

  // y0 and y1 of one run, over poison.
  static std::vector<Block> run(const Engine& engine, const Problem& problem) {
    std::vector<Tensor> in, out;
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      if (problem.one.constant_weights && i == 1) continue;
      const HostTensor& input = problem.inputs[i];
      in.push_back({"x" + std::to_string(i), input.type,
                    const_cast<std::byte*>(input.bytes.data())});  // NOLINT: only read
    }
    const ir::Graph& body = *problem.region.body;
    const TensorType made = body.type(body.outputs()[0]);
    std::vector<Block> found(2, Block(static_cast<size_t>(made.bytes()), std::byte{0xFF}));
    for (size_t i = 0; i < 2; ++i) out.push_back({"y" + std::to_string(i), made, found[i].data()});
    const auto ran = engine.infer(in, out);
    EXPECT_TRUE(ran.ok()) << ran.error().message;
    return found;
  }

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

  void check(const Case& one, int runs) {
    const Problem problem = problem_of(one);
    const auto want = expected(one, problem.inputs);
    for (const Tactic& tactic : problem.tactics) {
      SCOPED_TRACE(name_of(one) + ", " + tactic.key);
      const auto lowered = few_rows_lower(query(problem), tactic);
      ASSERT_TRUE(lowered.ok()) << lowered.error().message;
      std::optional<Block> first;
      for (const bool overlap : {true, false}) {
        const auto engine = engine_of(problem, *lowered, overlap);
        ASSERT_TRUE(engine.ok()) << engine.error().message;
        for (int i = 0; i < runs; ++i) {
          for (const Block& found : run(*engine, problem)) {
            if (!first) {
              first = found;
              expect_close(one, found, want);
              if (HasFatalFailure()) return;
            }
            ASSERT_TRUE(found == *first) << "run " << i << ", overlap " << overlap;
          }
        }
      }
    }
  }

  CudaTarget target_;
};

TEST_F(FewRows, EveryTilingAtEveryEdge) {
  for (const Case& one : {Case{DType::kBF16, 1, 1, 8}, Case{DType::kF16, 3, 1000, 2056, true},
                          Case{DType::kBF16, 8, 4104, 2048}, Case{DType::kBF16, 5, 33, 4096, true},
                          Case{DType::kF16, 16, 513, 4096, false, false},
                          Case{DType::kBF16, 32, 40, 264}, Case{DType::kF32, 8, 1001, 1028}}) {
    check(one, 1);
    if (HasFatalFailure()) return;
  }
}

TEST_F(FewRows, EightBits) {
  if (target_.device.compute_capability < 89) GTEST_SKIP() << "has no f8e4m3fn";
  for (const Case& one :
       {Case{DType::kF8E4M3FN, 1, 1008, 4096}, Case{DType::kF8E4M3FN, 8, 520, 4112, true},
        Case{DType::kF8E4M3FN, 16, 48, 4096}}) {
    check(one, 1);
    if (HasFatalFailure()) return;
  }
}

TEST_F(FewRows, SameBitsInEveryRun) {
  check({DType::kBF16, 1, 4096, 4096}, 12);
  check({DType::kBF16, 8, 4096, 4096, true}, 12);
}

}  // namespace
}  // namespace kiln::testing
