// Engine files of every format version still load and still compute the same.
#include <gtest/gtest.h>

#include "tests/engine/host/network_plan.h"
#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

TEST(Compat, Version1) {
  const auto engine =
      Engine::load("tests/compat/v1/network.engine", {.host_kernels = host_kernels()});
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(engine->info().model_name, "fixture.onnx");
  ASSERT_EQ(engine->info().points.size(), 2u);
  std::vector<float> x(3 * testing::kWidth), y(3 * testing::kClasses);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) / 4 - 0.75f;
  const Tensor in = testing::tensor("x", {3, testing::kWidth}, x),
               out = testing::tensor("y", {3, testing::kClasses}, y);
  const auto ran = engine->infer({&in, 1}, {&out, 1});
  ASSERT_TRUE(ran) << ran.error().message;
  const auto expected = testing::network_outputs(x);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-5);
}

}  // namespace
}  // namespace kiln
