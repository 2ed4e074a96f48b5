// The benchmark of target cuda on a fake driver, on which every copy and kernel takes 1 ms.
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/engine-run/benchmark.h"
#include "tests/engine/cuda/fake_driver.h"
#include "tests/engine/runtime_fixture.h"

namespace kiln::run {
namespace {

using testing::FakeDriver;

class GpuBenchmark : public ::testing::TestWithParam<MemoryKind> {};

TEST_P(GpuBenchmark, MeasuresTheParts) {
  FakeDriver& driver = FakeDriver::instance();
  driver.reset();
  {
    LoadOptions options;
    options.contexts = 2;
    options.host_kernels = testing::fake_kernels();
    options.cuda_libraries = driver.libraries();
    const auto engine = testing::load_plan(testing::launch_plan({4}), options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    std::vector<float> x = testing::ramp(4, 1);
    const Tensor in = testing::tensor("", {4, 4}, x);
    const auto outputs = engine->output_types({&in, 1});
    ASSERT_TRUE(outputs.ok());
    int begun = 0, ended = 0;
    const auto measured = benchmark(
        *engine, {&in, 1}, *outputs,
        {.warmup_ms = 1, .duration_s = 0, .iterations = 20, .threads = 2, .memory = GetParam()},
        {[&] { ++begun; }, [&] { ++ended; }});
    ASSERT_TRUE(measured.ok()) << measured.error().message;
    EXPECT_GE(measured->latency_ms.size(), 20u);
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(ended, 1);
    ASSERT_GE(measured->device_ms.size(), 10u);
    const auto all = [](const std::vector<double>& series, double value) {
      return std::all_of(series.begin(), series.end(), [=](double ms) { return ms == value; });
    };
    // Kernels alone read the input: device memory is read where it is.
    EXPECT_TRUE(all(measured->copy_in_ms, GetParam() == MemoryKind::kHost ? 1 : 0));
    EXPECT_TRUE(all(measured->copy_out_ms, 1));
    EXPECT_GT(measured->device_ms.front(), 2);
    EXPECT_TRUE(all(measured->device_ms, measured->device_ms.front()));
    EXPECT_EQ(measured->enqueue_ms.size(), measured->device_ms.size());
  }
  EXPECT_EQ(driver.live_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Memory, GpuBenchmark,
                         ::testing::Values(MemoryKind::kHost, MemoryKind::kDevice),
                         [](const auto& which) {
                           return which.param == MemoryKind::kHost ? "Host" : "Device";
                         });

TEST(GpuBenchmarkOnHost, HasNoDeviceMemory) {
  const auto engine = testing::load_plan(testing::affine_plan({4}));
  ASSERT_TRUE(engine.ok());
  std::vector<float> x = testing::ramp(4, 1);
  const Tensor in = testing::tensor("", {4, 4}, x);
  const auto outputs = engine->output_types({&in, 1});
  ASSERT_TRUE(outputs.ok());
  const auto measured = benchmark(*engine, {&in, 1}, *outputs, {.memory = MemoryKind::kDevice});
  ASSERT_FALSE(measured.ok());
  EXPECT_EQ(measured.error().message, "an engine of target host has no device memory");
}

}  // namespace
}  // namespace kiln::run
