// A plan for target cuda with every kind of step, for fakes of the driver and the libraries.
#pragma once
#include "engine/cuda/matmul/operation.h"
#include "engine/cuda/steps/cudnn_graph.h"
#include "tests/engine/plan_fixtures.h"

namespace kiln::testing {

inline plan::Operand f32_operand(uint64_t offset, Shape shape) {
  const TensorType type{DType::kF32, std::move(shape)};
  return {arena(offset, static_cast<uint64_t>(type.bytes())), type};
}

// d[2x4x4] = relu(a[2x4x8] b[2x8x4] + bias[4]).
inline Operation small_matmul() {
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

inline Operation small_graph() {
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
inline plan::Plan every_step_plan(std::initializer_list<int64_t> batches) {
  plan::Plan plan = launch_plan(batches, 0);
  PlanParts parts(plan);
  const uint32_t matmul = parts.operation(small_matmul());
  const uint32_t graph = parts.operation(small_graph());
  for (plan::ShapePoint& point : plan.points) {
    for (plan::Step& step : point.steps) {
      auto* launch = std::get_if<plan::KernelLaunch>(&step.action);
      if (launch != nullptr) launch->shared_bytes = 64 << 10;  // more than kernels have unasked
    }
    const uint64_t start = (point.arena_bytes + 255) / 256 * 256;
    point.arena_bytes = start + 1280;
    const plan::Operand a = f32_operand(start, {2, 4, 8}), b = f32_operand(start + 256, {2, 8, 4}),
                        bias = f32_operand(start + 512, {4}),
                        d = f32_operand(start + 768, {2, 4, 4});
    const plan::BufferRef workspace = arena(start + 1024, 256);
    point.steps.push_back({3, plan::Matmul{matmul, {a, b, bias}, {d}, workspace}});
    point.steps.push_back({3, plan::CudnnGraph{graph, {a}, {d}, workspace}});
  }
  return plan;
}

}  // namespace kiln::testing
