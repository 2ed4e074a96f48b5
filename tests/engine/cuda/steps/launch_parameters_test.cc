// Tensor maps of launches, on the fake driver: made from the addresses that a launch takes, and
// again when these change.
#include <gtest/gtest.h>

#include "tests/engine/cuda/fake_driver.h"
#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

using testing::FakeDriver;
using testing::load_plan;

LoadOptions options() {
  LoadOptions options;
  options.host_kernels = testing::fake_kernels();
  options.cuda_libraries = FakeDriver::instance().libraries();
  return options;
}

// y = 2 x of f32[2x4] by one launch through tensor maps.
plan::Plan mapped_plan() {
  const TensorType type{DType::kF32, {2, 4}};
  plan::Plan plan = testing::scale_plan({testing::point_of("p", 0, type)}, -1);
  plan.origin.target = plan::Target::kCuda;
  plan.origin.compute_capability = 90;
  plan.blobs.push_back(testing::fake_cubin());
  plan::KernelLaunch launch;
  launch.module = static_cast<uint32_t>(plan.blobs.size() - 1);
  launch.entry = "twice_mapped";
  launch.block = {8, 1, 1};
  launch.inputs = {{testing::input(0, 32), type}};
  launch.outputs = {{testing::output(0, 32), type}};
  launch.tensor_maps = {{0, 4, 2}, {1, 8, 1}};
  plan.points[0].steps = {{0, launch}};
  return plan;
}

plan::KernelLaunch& launch_of(plan::Plan& plan) {
  return std::get<plan::KernelLaunch>(plan.points[0].steps[0].action);
}

class TensorMapLaunches : public ::testing::Test {
 protected:
  void SetUp() override { driver.reset(); }
  FakeDriver& driver = FakeDriver::instance();
};

TEST_F(TensorMapLaunches, DescribeTheirOperands) {
  const auto engine = load_plan(mapped_plan(), options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  // Columns, rows, then a box of 128 bytes of as many rows as the map says.
  const std::vector<std::vector<uint64_t>> want = {{4, 2, 32, 2}, {8, 1, 32, 1}};
  EXPECT_EQ(driver.maps(), want);
}

TEST_F(TensorMapLaunches, FollowTensorsOfTheDevice) {
  const auto engine = load_plan(mapped_plan(), options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const TensorType type{DType::kF32, {2, 4}};
  std::vector<std::shared_ptr<std::byte>> kept;
  for (int round = 0; round < 3; ++round) {
    const auto x = *engine->allocate(MemoryKind::kDevice, 64);
    const auto y = *engine->allocate(MemoryKind::kDevice, 64);
    kept.insert(kept.end(), {x, y});
    std::vector<float> given(8, static_cast<float>(round + 1)), found(8);
    const Tensor in{"x", type, x.get(), MemoryKind::kDevice};
    const Tensor out{"y", type, y.get(), MemoryKind::kDevice};
    ASSERT_TRUE(engine->copy(in.data, given.data(), 32).ok());
    driver.reset();
    const auto ran = engine->infer({&in, 1}, {&out, 1});
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(driver.copies(), 0);
    ASSERT_TRUE(engine->copy(found.data(), out.data, 32).ok());
    for (float value : found) EXPECT_EQ(value, 2.0f * static_cast<float>(round + 1));
  }
}

std::string refusal(const plan::Plan& plan, const LoadOptions& load) {
  const auto engine = load_plan(plan, load);
  return engine.ok() ? "" : engine.error().message;
}

TEST_F(TensorMapLaunches, BringWhatTheKernelTakes) {
  plan::Plan fewer = mapped_plan(), other = mapped_plan();
  launch_of(fewer).tensor_maps.pop_back();
  EXPECT_NE(refusal(fewer, options()).find("has more parameters than the step's 3"),
            std::string::npos);
  launch_of(other).entry = "add_row";
  launch_of(other).tensor_maps.pop_back();
  EXPECT_NE(refusal(other, options())
                .find("parameter 2 of the kernel has 8 bytes, expected a "
                      "tensor map"),
            std::string::npos);
}

TEST_F(TensorMapLaunches, NeedADriverThatHasThem) {
  LoadOptions load = options();
  auto old = FakeDriver::instance().libraries();
  old->driver_api->tensor_map_encode_tiled = nullptr;
  load.cuda_libraries = old;
  EXPECT_NE(refusal(mapped_plan(), load).find("the driver has no cuTensorMapEncodeTiled"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln
