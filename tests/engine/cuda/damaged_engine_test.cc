// Damaged engines for target cuda, on fakes of the driver and the libraries.
#include <gtest/gtest.h>

#include "engine/cuda/matmul/operation.h"
#include "engine/cuda/steps/cudnn_graph.h"
#include "tests/engine/cuda/fake_cublaslt.h"
#include "tests/engine/cuda/fake_cudnn.h"
#include "tests/engine/cuda/fake_driver.h"
#include "tests/engine/damage.h"

namespace kiln {
namespace {

using testing::arena;

plan::Operand operand(uint64_t offset, Shape shape) {
  const TensorType type{DType::kF32, std::move(shape)};
  return {arena(offset, static_cast<uint64_t>(type.bytes())), type};
}

// d[2x4x4] = relu(a[2x4x8] b[2x8x4] + bias[4]).
Operation matmul_operation() {
  cuda::MatmulCall call;
  call.problem.m = call.problem.n = 4;
  call.problem.k = 8;
  call.problem.batch = {2};
  call.problem.a = {false, 8, {32}};
  call.problem.b = {false, 4, {32}};
  call.problem.d = {false, 4, {16}};
  call.problem.bias = true;
  call.problem.activation = cuda::MatmulProblem::Activation::kRelu;
  call.algorithm.config = {66, 20, 1, 0, 0, 0, 35, 0, 3};
  call.algorithm.workspace_bytes = 128;
  call.algorithm.version = 130100;
  return cuda::to_operation(call);
}

Operation graph_operation() {
  return Operation{cuda::kCudnnGraphOperation, {}}
      .set("plan", std::string("{json}"))
      .set("uids", std::vector<int64_t>{1, 7})
      .set("offsets", std::vector<int64_t>{0, 0})
      .set("bytes", std::vector<int64_t>{256, 128})
      .set("scalar_uids", std::vector<int64_t>{9})
      .set("scalars", std::vector<double>{0.125})
      .set("version", int64_t{91900});
}

// Every kind of step that a CUDA engine can have: launches, copies, control flow, host steps, and
// one call of each library.
plan::Plan every_step_plan() {
  plan::Plan plan = testing::launch_plan({1, 4}, 0);
  testing::PlanParts parts(plan);
  const uint32_t matmul = parts.operation(matmul_operation());
  const uint32_t graph = parts.operation(graph_operation());
  for (plan::ShapePoint& point : plan.points) {
    const uint64_t start = (point.arena_bytes + 255) / 256 * 256;
    point.arena_bytes = start + 1280;
    const plan::Operand a = operand(start, {2, 4, 8}), b = operand(start + 256, {2, 8, 4}),
                        bias = operand(start + 512, {4}), d = operand(start + 768, {2, 4, 4});
    const plan::BufferRef workspace = arena(start + 1024, 256);
    point.steps.push_back({3, plan::Matmul{matmul, {a, b, bias}, {d}, workspace}});
    point.steps.push_back({3, plan::CudnnGraph{graph, {a}, {d}, workspace}});
  }
  return plan;
}

TEST(DamagedCudaEngine, ResealedPlansRunOrFail) {
  testing::FakeDriver& driver = testing::FakeDriver::instance();
  const testing::FakeCublasLt cublaslt;
  const cuda::FakeCudnn cudnn;
  const auto libraries = driver.libraries();
  libraries->cublaslt_api = cublaslt.api();
  libraries->cudnn_api = cudnn.api();
  LoadOptions options{.host_kernels = testing::fake_kernels()};
  options.cuda_libraries = libraries;
  driver.reset();
  const plan::Plan plan = every_step_plan();
  const auto whole = testing::load_plan(plan, options);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_GT(cudnn.executed.size(), 0u);
  EXPECT_GT(cublaslt.matmuls, 0);
  const int held = driver.live();
  const int loaded = testing::load_and_run_damaged(plan, options, 10'000, 8, [&] {
    driver.reset();
    driver.fail_call(2'000, CUDA_ERROR_LAUNCH_FAILED);  // ends loops
  });
  EXPECT_GT(loaded, 0);
  EXPECT_EQ(driver.live(), held);
}

}  // namespace
}  // namespace kiln
