// The sample plugin from an ONNX node of its own domain to the engine's answer.
#include <gtest/gtest.h>

#include <cmath>

#include "builder/builder.h"
#include "engine/engine.h"
#include "tests/environment.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

constexpr const char* kModel = "tests/plugins/sample/swish.onnx";

class ScaledSwish : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.output = folder_ / "swish.engine";
    options_.target = BuildTarget::kHost;
    options_.max_batch = 4;
    options_.quiet = true;
  }

  testing::ScratchFolder folder_;
  BuildOptions options_;
};

TEST_F(ScaledSwish, RunsFromAModel) {
  options_.plugins = {testing::sample_plugin()};
  const auto built = build(kModel, options_);
  ASSERT_TRUE(built) << built.error().message;
  const auto engine = Engine::load(
      options_.output, {.host_kernels = host_kernels(), .plugins = {testing::sample_plugin()}});
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_TRUE(engine->info().verified);
  EXPECT_TRUE(engine->info().batch_padding) << engine->info().batch_padding_reason;

  // Three rows, so that one is padding.
  std::vector<float> x(18), y(18);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 4 - 2;
  const Tensor in{"x", {DType::kF32, {3, 6}}, x.data()}, out{"y", {DType::kF32, {3, 6}}, y.data()};
  const auto ran = engine->infer({&in, 1}, {&out, 1});
  ASSERT_TRUE(ran) << ran.error().message;
  for (size_t i = 0; i < x.size(); ++i) {
    const double shifted = double{x[i]} + 1;
    EXPECT_NEAR(y[i], 2 * shifted / (1 + std::exp(-0.5 * shifted)), 1e-5) << i;
  }
}

TEST_F(ScaledSwish, IsAskedForByName) {
  const auto built = build(kModel, options_);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ErrorCode::kUnsupported);
  for (const char* part : {"swish.onnx", "node 'swish'", "'com.example.ScaledSwish'", "--plugin"}) {
    EXPECT_NE(built.error().message.find(part), std::string::npos) << built.error().message;
  }
}

TEST_F(ScaledSwish, EngineNeedsItsLibrary) {
  options_.plugins = {testing::sample_plugin()};
  ASSERT_TRUE(build(kModel, options_));
  const auto engine = Engine::load(options_.output, {.host_kernels = host_kernels()});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace kiln
