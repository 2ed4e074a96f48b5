#include <gtest/gtest.h>

#include <cmath>

#include "engine/plugin_library.h"
#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

const std::string kName = "com.example.ScaledSwish";
const TensorType kRow{DType::kF32, {2, 3}};

class SamplePlugin : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path path = testing::sample_plugin();
    auto loaded = load_plugins({&path, 1});
    ASSERT_TRUE(loaded) << loaded.error().message;
    plugins_ = *std::move(loaded);
    ASSERT_EQ(plugins_.size(), 1u);
  }

  const Plugin& plugin() const { return plugins_[0]; }

  std::vector<Plugin> plugins_;
};

TEST_F(SamplePlugin, IsFoundByNameAndVersion) {
  EXPECT_EQ(plugin().name(), kName);
  EXPECT_TRUE(plugin().has_host_code());
  EXPECT_TRUE(plugin().rows_independent("{}"));
  EXPECT_EQ(find_plugin(plugins_, kName), &plugin());
  EXPECT_EQ(find_plugin(plugins_, kName, "1"), &plugin());
  EXPECT_EQ(find_plugin(plugins_, kName, "2"), nullptr);
  EXPECT_EQ(find_plugin(plugins_, "com.example.Other"), nullptr);
}

TEST_F(SamplePlugin, InfersTypes) {
  const auto types = plugin().infer("{}", {&kRow, 1}, 1);
  ASSERT_TRUE(types);
  EXPECT_EQ(*types, std::vector<TensorType>{kRow});
  const TensorType wrong{DType::kI32, {2}};
  const auto refused = plugin().infer("{}", {&wrong, 1}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "plugin 'com.example.ScaledSwish': infer: status 1, ScaledSwish takes f32");
  const TensorType deep{DType::kF32, Shape(17, 1)};
  EXPECT_EQ(plugin().infer("{}", {&deep, 1}, 1).error().code, ErrorCode::kUnsupported);
}

TEST_F(SamplePlugin, OffersACudaKernel) {
  const auto kernels = plugin().kernels(R"({"scale": 3})", {&kRow, 1}, {&kRow, 1}, 90);
  ASSERT_TRUE(kernels);
  ASSERT_EQ(kernels->size(), 1u);
  EXPECT_EQ((*kernels)[0].entry, "scaled_swish");
  EXPECT_NE((*kernels)[0].source.find("i < 6ll"), std::string::npos) << (*kernels)[0].source;
  EXPECT_NE((*kernels)[0].source.find("3.000000000e+00f"), std::string::npos);
  EXPECT_EQ((*kernels)[0].grid[0], 1u);
  EXPECT_EQ((*kernels)[0].block[0], 256u);
  EXPECT_TRUE(plugin().kernels("{}", {&kRow, 1}, {&kRow, 1}, 30)->empty());
}

float swish(float x, float scale, float beta) { return scale * x / (1 + std::exp(-beta * x)); }

TEST_F(SamplePlugin, RunsHostCode) {
  const auto instance =
      plugin().instantiate(R"({"beta": 0.5, "scale": 2})", {&kRow, 1}, {&kRow, 1});
  ASSERT_TRUE(instance) << instance.error().message;
  const std::vector<float> x = {-2, -1, 0, 0.5, 1, 3};
  std::vector<float> y(6);
  const void* in = x.data();
  void* out = y.data();
  ASSERT_TRUE(instance->run({&in, 1}, {&out, 1}, nullptr));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], swish(x[i], 2, 0.5f));
  EXPECT_FALSE(instance->run({}, {&out, 1}, nullptr));
}

// y = scaled_swish(x), one plugin step.
plan::Plan plugin_plan(const std::string& version, const TensorType& output) {
  plan::Plan plan = testing::scale_plan({testing::point_of("p", 0, kRow)}, -1);
  plan.plugins = {{kName, version}};
  const std::string attributes = R"({"scale": 2})";
  plan.blobs.push_back(
      testing::shared_bytes(std::vector<char>(attributes.begin(), attributes.end())));
  plan.points[0].outputs = {output};
  plan.points[0].steps[0].action =
      plan::PluginCall{0,
                       1,
                       {{testing::input(0, 24), kRow}},
                       {{testing::output(0, static_cast<uint64_t>(output.bytes())), output}},
                       {}};
  return plan;
}

TEST_F(SamplePlugin, RunsInAnEngine) {
  const auto engine =
      testing::load_plan(plugin_plan("1", kRow), {.plugins = {testing::sample_plugin()}});
  ASSERT_TRUE(engine) << engine.error().message;
  plugins_.clear();  // the engine keeps its own hold of the library
  std::vector<float> x = {-2, -1, 0, 0.5, 1, 3}, y(6);
  ASSERT_TRUE(testing::infer_same_shape(*engine, {2, 3}, x, y));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], swish(x[i], 2, 1));
}

TEST_F(SamplePlugin, VersionAndTypesAreChecked) {
  const LoadOptions options{.plugins = {testing::sample_plugin()}};
  const auto version = testing::load_plan(plugin_plan("7", kRow), options);
  ASSERT_FALSE(version);
  EXPECT_EQ(version.error().code, ErrorCode::kVersionMismatch);
  EXPECT_NE(version.error().message.find("has version '1', the engine was built with '7'"),
            std::string::npos);
  const auto types = testing::load_plan(plugin_plan("1", {DType::kF32, {5}}), options);
  ASSERT_FALSE(types);
  EXPECT_NE(types.error().message.find(
                "plugin 'com.example.ScaledSwish': create: status 1, output and input differ"),
            std::string::npos)
      << types.error().message;
}

TEST(LoadPlugins, SaysWhatIsWrongWithALibrary) {
  const testing::ScratchFolder folder;
  const std::filesystem::path absent = folder / "absent.so";
  const auto missing = load_plugins({&absent, 1});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  EXPECT_NE(missing.error().message.find("plugin library '" + absent.string()), std::string::npos);
  // A name that the system would search for is still a path.
  const std::filesystem::path bare = "libm.so.6";
  EXPECT_FALSE(load_plugins({&bare, 1}));
  EXPECT_FALSE(load_plugins(std::vector<std::filesystem::path>{""}));
}

TEST_F(SamplePlugin, IsNotLoadedTwice) {
  const std::vector<std::filesystem::path> twice(2, testing::sample_plugin());
  const auto loaded = load_plugins(twice);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace kiln
