// Small plans by hand, for tests of the engine file and of the runtime.
#pragma once
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "formats/engine_file/plan.h"
#include "formats/operation/operation.h"

namespace kiln::testing {

using plan::BufferRef;
using Space = plan::BufferRef::Space;

inline BufferRef arena(uint64_t offset, uint64_t bytes) {
  return {Space::kArena, 0, offset, bytes};
}
inline BufferRef input(uint32_t index, uint64_t bytes) { return {Space::kInput, index, 0, bytes}; }
inline BufferRef output(uint32_t index, uint64_t bytes) {
  return {Space::kOutput, index, 0, bytes};
}

template <class T>
SharedBytes shared_bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return SharedBytes::take(std::move(bytes));
}

// Adds blobs and constants to a plan.
class PlanParts {
 public:
  explicit PlanParts(plan::Plan& plan) : plan_(plan) {}

  uint32_t operation(const Operation& operation) {
    const std::string text = encode(operation);
    plan_.blobs.push_back(shared_bytes(std::vector<char>(text.begin(), text.end())));
    return static_cast<uint32_t>(plan_.blobs.size() - 1);
  }

  template <class T>
  BufferRef constant(const std::string& name, std::vector<T> values) {
    std::vector<std::byte> weights(plan_.weights.bytes.begin(), plan_.weights.bytes.end());
    weights.resize((weights.size() + 63) / 64 * 64);
    const uint64_t offset = weights.size(), bytes = values.size() * sizeof(T);
    weights.resize(offset + bytes);
    std::memcpy(weights.data() + offset, values.data(), bytes);
    plan_.constants.push_back({.name = name, .offset = offset, .bytes = bytes, .hash = 0});
    plan_.weights = SharedBytes::take(std::move(weights));
    return {Space::kWeights, 0, offset, bytes};
  }

 private:
  plan::Plan& plan_;
};

inline plan::Origin fixture_origin() {
  plan::Origin origin;
  origin.kiln_version = "0.1.0";
  origin.device = "a CPU";
  origin.precision = "fp32";
  origin.verified = true;
  origin.model_name = "fixture.onnx";
  return origin;
}

// x f32[B, 4] -> y f32[B, 4] = 16 x + bias, bias = {1, 2, 3, 4}, through every kind of step but a
// plugin's: a host operation, a repeat of three rounds in place, a branch, copies. Runs with
// fake_kernels.h.
inline plan::Plan affine_plan(std::initializer_list<int64_t> batches) {
  plan::Plan plan;
  plan.origin = fixture_origin();
  plan.inputs = {{"x", 0}};
  plan.outputs = {{"y", 0}};
  plan.batch_padding = true;
  plan.report_json = "{}";
  PlanParts parts(plan);
  const uint32_t twice = parts.operation(Operation{"scale", {}}.set("factor", 2.0));
  const uint32_t add = parts.operation(Operation{"add_row", {}});
  const BufferRef bias = parts.constant<float>("bias", {1, 2, 3, 4});
  const BufferRef three = parts.constant<int64_t>("three", {3});
  const BufferRef yes = parts.constant<uint8_t>("yes", {1});
  for (int64_t batch : batches) {
    const TensorType type{DType::kF32, {batch, 4}}, row{DType::kF32, {4}};
    const auto bytes = static_cast<uint64_t>(type.bytes());
    const uint64_t slot = (bytes + 63) / 64 * 64;
    const BufferRef a = arena(0, bytes), b = arena(slot, bytes), round = arena(2 * slot, 8);
    plan::ShapePoint point;
    point.name = "b" + std::to_string(batch);
    point.batch = batch;
    point.inputs = point.outputs = {type};
    point.arena_bytes = point.arena_lower_bound_bytes = 2 * slot + 64;
    point.region_names = {"double", "loop", "choose", "out"};
    point.steps = {
        {0, plan::HostOperation{twice, {{input(0, bytes), type}}, {{a, type}}, {}}},
        {1, plan::Repeat{three, {}, round, 1}},
        {1, plan::HostOperation{twice, {{a, type}}, {{a, type}}, {}}},
        {2, plan::Branch{yes, 1, 1}},
        {2, plan::HostOperation{add, {{a, type}, {bias, row}}, {{b, type}}, {}}},
        {2, plan::Copy{a, b}},
        {3, plan::Copy{b, output(0, bytes)}},
    };
    plan.points.push_back(point);
  }
  return plan;
}

// Starts as a cubin does: the fake driver asks for no more.
inline SharedBytes fake_cubin() {
  std::vector<unsigned char> elf(64);
  const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2};
  std::memcpy(elf.data(), magic, sizeof magic);
  return shared_bytes(elf);
}

// affine_plan for target cuda: its host operations are launches of the kernels that
// cuda/fake_driver.h has; those of region `keep` stay on the host.
inline plan::Plan launch_plan(std::initializer_list<int64_t> batches, uint32_t keep = 99) {
  plan::Plan plan = affine_plan(batches);
  plan.origin.target = plan::Target::kCuda;
  plan.origin.compute_capability = 90;
  plan.origin.cuda_version = 13000;
  plan.blobs.push_back(fake_cubin());
  const auto module = static_cast<uint32_t>(plan.blobs.size() - 1);
  for (plan::ShapePoint& point : plan.points) {
    for (plan::Step& step : point.steps) {
      auto* host = std::get_if<plan::HostOperation>(&step.action);
      if (host == nullptr || step.region == keep) continue;
      plan::KernelLaunch launch;
      launch.module = module;
      launch.entry = host->inputs.size() == 2 ? "add_row" : "twice";
      launch.block = {static_cast<uint32_t>(host->outputs[0].type.elements()), 1, 1};
      launch.inputs = host->inputs;
      launch.outputs = host->outputs;
      step.action = launch;
    }
  }
  return plan;
}

// x of any types, one point each, y = 2 x without a batch dimension or along `batch_axis`.
inline plan::Plan scale_plan(const std::vector<plan::ShapePoint>& points, int32_t batch_axis) {
  plan::Plan plan;
  plan.origin = fixture_origin();
  plan.inputs = {{"x", batch_axis}};
  plan.outputs = {{"y", batch_axis}};
  plan.batch_padding = batch_axis >= 0;
  PlanParts parts(plan);
  const uint32_t twice = parts.operation(Operation{"scale", {}}.set("factor", 2.0));
  for (plan::ShapePoint point : points) {
    const auto bytes = static_cast<uint64_t>(point.inputs[0].bytes());
    point.outputs = point.inputs;
    point.region_names = {"scale"};
    point.steps = {{0, plan::HostOperation{twice,
                                           {{input(0, bytes), point.inputs[0]}},
                                           {{output(0, bytes), point.outputs[0]}},
                                           {}}}};
    plan.points.push_back(std::move(point));
  }
  return plan;
}

inline plan::ShapePoint point_of(const std::string& name, int64_t batch, const TensorType& x) {
  plan::ShapePoint point;
  point.name = name;
  point.batch = batch;
  point.inputs = {x};
  return point;
}

}  // namespace kiln::testing
