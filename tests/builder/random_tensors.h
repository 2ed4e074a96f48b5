// Inputs for running a graph, and a comparison of what two graphs make of them.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/verify/reference.h"

namespace kiln::test {

inline HostTensor random_tensor(const TensorType& type, std::mt19937& random) {
  std::vector<std::byte> wide(static_cast<size_t>(type.elements()) * 8);
  std::normal_distribution<double> normal;
  for (size_t i = 0; i < wide.size(); i += 8) {
    // Small integers where the type has no fractions; indices stay in range of most axes.
    const double x = is_float(type.dtype) ? normal(random) : static_cast<double>(random() % 2);
    std::memcpy(wide.data() + i, &x, sizeof x);
  }
  HostTensor source;  // filled by member: g++ 12 takes the aggregate for uninitialised
  source.type = {DType::kF64, type.shape};
  source.bytes = SharedBytes::take(std::move(wide));
  auto cast = run_reference_op(ir::Cast{type.dtype, true}, {&source, 1}, {&type, 1});
  EXPECT_TRUE(cast.ok()) << cast.error().message;
  return cast.value()[0];
}

inline std::vector<HostTensor> random_inputs(const ir::Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<HostTensor> inputs;
  for (ir::ValueId input : graph.inputs()) {
    inputs.push_back(random_tensor(graph.type(input), random));
  }
  return inputs;
}

inline std::vector<double> to_doubles(const HostTensor& tensor) {
  const TensorType wide{DType::kF64, tensor.type.shape};
  auto cast = run_reference_op(ir::Cast{DType::kF64, true}, {&tensor, 1}, {&wide, 1});
  EXPECT_TRUE(cast.ok()) << cast.error().message;
  std::vector<double> numbers(static_cast<size_t>(wide.elements()));
  if (!numbers.empty()) {
    std::memcpy(numbers.data(), cast.value()[0].bytes.data(), numbers.size() * 8);
  }
  return numbers;
}

// Both graphs give the same outputs, within `tolerance` absolute and relative; NaN equals NaN.
inline void expect_same_results(const ir::Graph& before, const ir::Graph& after,
                                const std::vector<HostTensor>& inputs, double tolerance) {
  const auto expected = run_reference(before, inputs);
  const auto found = run_reference(after, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(expected->size(), found->size());
  for (size_t i = 0; i < expected->size(); ++i) {
    const auto a = to_doubles((*expected)[i]), b = to_doubles((*found)[i]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t j = 0; j < a.size(); ++j) {
      if (std::isnan(a[j]) && std::isnan(b[j])) continue;
      if (a[j] == b[j]) continue;
      ASSERT_LE(std::abs(a[j] - b[j]), tolerance * (1 + std::abs(a[j])))
          << "output " << i << ", element " << j << ": " << a[j] << " became " << b[j];
    }
  }
}

}  // namespace kiln::test
