// A small network of real kernels, by hand.
#pragma once
#include <cmath>
#include <random>
#include <string_view>

#include "tests/engine/plan_fixtures.h"

namespace kiln::testing {

inline constexpr int64_t kWidth = 24, kClasses = 10;

inline uint32_t operation(PlanParts& parts, std::string_view text) {
  return parts.operation(*parse_operation(text));
}

// x f32[B, 24] -> softmax(tanh(x W1) W2) f32[B, 10], with oneDNN's and plain products.
inline plan::Plan network_plan(std::initializer_list<int64_t> batches) {
  plan::Plan plan;
  plan.origin = fixture_origin();
  plan.inputs = {{"x", 0}};
  plan.outputs = {{"y", 0}};
  plan.batch_padding = true;
  PlanParts parts(plan);
  std::mt19937 random(5);
  const auto noise = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(random() % 2001) / 1000 - 1;
    return values;
  };
  const auto w1 = parts.constant("w1", noise(kWidth * kWidth));
  const auto w2 = parts.constant("w2", noise(kWidth * kClasses));
  const uint32_t dnn =
      operation(parts, "onednn.matmul{post_ops=strings[], transpose_a=0, transpose_b=0}");
  const uint32_t plain = operation(parts, "matmul{transpose_a=0, transpose_b=0}");
  const uint32_t tanh = operation(parts, "tanh"), exp = operation(parts, "exp"),
                 sum = operation(parts, R"(reduce{axes=[1], fn="sum", keep_dims=1})"),
                 divide = operation(parts, "div");
  const TensorType w1_type{DType::kF32, {kWidth, kWidth}}, w2_type{DType::kF32, {kWidth, kClasses}};
  for (int64_t batch : batches) {
    const TensorType x{DType::kF32, {batch, kWidth}}, y{DType::kF32, {batch, kClasses}},
        row{DType::kF32, {batch, 1}};
    const auto at = [](uint64_t slot, const TensorType& type) {
      return plan::Operand{arena(slot * 64 * kWidth * 4, uint64_t(type.bytes())), type};
    };
    const plan::Operand in{input(0, uint64_t(x.bytes())), x},
        out{output(0, uint64_t(y.bytes())), y};
    const plan::BufferRef workspace = arena(5 * 64 * kWidth * 4, 1 << 16);
    plan::ShapePoint point;
    point.name = "b" + std::to_string(batch);
    point.batch = batch;
    point.inputs = {x};
    point.outputs = {y};
    point.arena_bytes = 5 * 64 * kWidth * 4 + (1 << 16);
    point.region_names = {"r"};
    point.steps = {
        {0, plan::HostOperation{dnn, {in, {w1, w1_type}}, {at(0, x)}, workspace}},
        {0, plan::HostOperation{tanh, {at(0, x)}, {at(1, x)}, {}}},
        {0, plan::HostOperation{plain, {at(1, x), {w2, w2_type}}, {at(2, y)}, workspace}},
        {0, plan::HostOperation{exp, {at(2, y)}, {at(3, y)}, {}}},
        {0, plan::HostOperation{sum, {at(3, y)}, {at(4, row)}, workspace}},
        {0, plan::HostOperation{divide, {at(3, y), at(4, row)}, {out}, {}}},
    };
    plan.points.push_back(point);
  }
  return plan;
}

// What the network makes of the rows `x`, from the same weights, summed in double.
inline std::vector<float> network_outputs(const std::vector<float>& x) {
  const plan::Plan plan = network_plan({1});
  const auto* weights = reinterpret_cast<const float*>(plan.weights.data());
  const float* w1 = weights + plan.constants[0].offset / sizeof(float);
  const float* w2 = weights + plan.constants[1].offset / sizeof(float);
  std::vector<float> y;
  for (size_t row = 0; row < x.size(); row += kWidth) {
    std::vector<double> hidden(kWidth), powers(kClasses);
    double total = 0;
    for (int64_t j = 0; j < kWidth; ++j) {
      for (int64_t k = 0; k < kWidth; ++k) hidden[j] += double{x[row + k]} * w1[k * kWidth + j];
      hidden[j] = std::tanh(hidden[j]);
    }
    for (int64_t c = 0; c < kClasses; ++c) {
      for (int64_t k = 0; k < kWidth; ++k) powers[c] += hidden[k] * w2[k * kClasses + c];
      powers[c] = std::exp(powers[c]);
      total += powers[c];
    }
    for (double power : powers) y.push_back(static_cast<float>(power / total));
  }
  return y;
}

}  // namespace kiln::testing
