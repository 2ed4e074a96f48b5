// The CUDA executor on a fake driver: graphs, padding, host steps, control flow. The kernels
// themselves are tested on a GPU.
#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/cuda/fake_driver.h"
#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

using testing::affine_of;
using testing::FakeDriver;
using testing::infer_same_shape;
using testing::launch_plan;
using testing::load_plan;
using testing::ramp;

LoadOptions options() {
  LoadOptions options;
  options.host_kernels = testing::fake_kernels();
  options.cuda_libraries = FakeDriver::instance().libraries();
  return options;
}

class CudaEngine : public ::testing::Test {
 protected:
  void SetUp() override { driver.reset(); }
  void TearDown() override { EXPECT_EQ(driver.live_bytes(), 0u); }
  FakeDriver& driver = FakeDriver::instance();
};

void expect_affine(const Engine& engine, int64_t rows, float seed) {
  std::vector<float> x = ramp(rows, seed), y(x.size());
  const auto ran = infer_same_shape(engine, {rows, 4}, x, y);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_EQ(y, affine_of(x)) << rows << " rows";
}

TEST_F(CudaEngine, RunsEveryBucketAndPadsBetweenThem) {
  const auto engine = load_plan(launch_plan({1, 4, 16}), options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  for (int64_t rows : {1, 2, 3, 4, 5, 11, 16}) expect_affine(*engine, rows, 0.5f);
}

TEST_F(CudaEngine, HasOneGraphForEachRunOfDeviceSteps) {
  const auto engine = load_plan(launch_plan({2}), options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  driver.reset();
  expect_affine(*engine, 2, 1);
  // "double", three rounds of the loop's body, the branch's side, the last copy.
  EXPECT_EQ(driver.launches(), 6);
}

TEST_F(CudaEngine, RunsHostStepsBetweenGraphs) {
  const auto engine = load_plan(launch_plan({1, 4}, 1), options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  for (int64_t rows : {1, 3, 4}) expect_affine(*engine, rows, 2);
  LoadOptions bare = options();
  bare.host_kernels = {};
  const auto refused = load_plan(launch_plan({1}, 1), bare);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("'loop'"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("link kiln_host"), std::string::npos);
}

// y = 2 x + bias in two launches, the second of `threads`.
plan::Plan launches_plan(uint32_t threads) {
  plan::Plan plan = testing::scale_plan({testing::point_of("p", 0, {DType::kF32, {4}})}, -1);
  plan.origin.target = plan::Target::kCuda;
  plan.origin.compute_capability = 90;
  testing::PlanParts parts(plan);
  const plan::BufferRef bias = parts.constant<float>("bias", {1, 2, 3, 4});
  plan.blobs.push_back(testing::fake_cubin());
  const TensorType type{DType::kF32, {4}};
  plan::KernelLaunch twice, add;
  twice.module = add.module = static_cast<uint32_t>(plan.blobs.size() - 1);
  twice.entry = "twice";
  twice.block = {4, 1, 1};
  twice.inputs = {{testing::input(0, 16), type}};
  twice.outputs = add.inputs = {{testing::arena(256, 16), type}};
  add.entry = "add_row";
  add.block = {threads, 1, 1};
  add.inputs.push_back({bias, type});
  add.outputs = {{testing::output(0, 16), type}};
  plan.points[0].arena_bytes = 512;
  plan.points[0].steps = {{0, twice}, {0, add}};
  return plan;
}

// A caller's f32 tensors [4] in device memory, `shift` bytes behind an aligned address.
struct DevicePair {
  std::shared_ptr<std::byte> x, y;
  uint64_t shift = 0;
  Tensor in() const { return {"x", {DType::kF32, {4}}, x.get() + shift, MemoryKind::kDevice}; }
  Tensor out() const { return {"y", {DType::kF32, {4}}, y.get() + shift, MemoryKind::kDevice}; }
};
DevicePair device_pair(const Engine& engine, uint64_t shift = 0) {
  return {*engine.allocate(MemoryKind::kDevice, 64), *engine.allocate(MemoryKind::kDevice, 64),
          shift};
}

// Runs launches_plan()'s engine on [base, base + 3], and checks what it computes.
void expect_launches(const Engine& engine, const DevicePair& pair, float base) {
  const std::vector<float> given = {base, base + 1, base + 2, base + 3};
  std::vector<float> found(4), want;
  for (size_t i = 0; i < 4; ++i) want.push_back(2 * given[i] + static_cast<float>(i + 1));
  const Tensor in = pair.in(), out = pair.out();
  ASSERT_TRUE(engine.copy(in.data, given.data(), 16).ok());
  const auto ran = engine.infer({&in, 1}, {&out, 1});
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  ASSERT_TRUE(engine.copy(found.data(), out.data, 16).ok());
  EXPECT_EQ(found, want);
}

TEST_F(CudaEngine, TakesTensorsOfTheDeviceWhereTheyAre) {
  const auto engine = load_plan(launches_plan(4), options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const DevicePair first = device_pair(*engine), second = device_pair(*engine);
  const auto expect_calls = [&](const DevicePair& pair, int copies, int rebound) {
    driver.reset();
    expect_launches(*engine, pair, static_cast<float>(rebound));
    EXPECT_EQ(driver.copies() - 2, copies);  // two are the test's own
    EXPECT_EQ(driver.rebound(), rebound);
    EXPECT_EQ(driver.launches(), 1);
  };
  expect_calls(first, 0, 2);
  expect_calls(first, 0, 0);
  expect_calls(second, 0, 2);
  expect_calls({second.x, first.y}, 0, 1);
  // Not aligned as kernels expect it.
  DevicePair shifted = first;
  shifted.shift = 16;
  expect_calls(shifted, 2, 2);
  expect_calls(shifted, 2, 0);
  expect_calls(first, 0, 2);
}

TEST_F(CudaEngine, TimesStepsOnTensorsOfItsOwn) {
  const auto engine = load_plan(launches_plan(4), options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  auto context = engine->create_context();
  ASSERT_TRUE(context.ok());
  {
    const DevicePair pair = device_pair(*engine);
    const Tensor in = pair.in(), out = pair.out();
    ASSERT_TRUE(context->enqueue({&in, 1}, {&out, 1}).ok());
  }
  // The caller's memory is gone: a launch on it would fail.
  const auto us = context->time_on_device(0, 3);
  EXPECT_TRUE(us.ok()) << us.error().message;
}

TEST_F(CudaEngine, CopiesTensorsThatOthersThanKernelsTouch) {
  plan::Plan plan = launches_plan(4);
  plan.points[0].steps.push_back({0, plan::Copy{testing::output(0, 16), testing::arena(0, 16)}});
  const auto engine = load_plan(plan, options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const DevicePair pair = device_pair(*engine);
  driver.reset();
  expect_launches(*engine, pair, 1);
  EXPECT_EQ(driver.copies() - 2, 1);  // of the output
  EXPECT_EQ(driver.rebound(), 1);     // for the input
}

TEST_F(CudaEngine, KernelsThatAskForSharedMemoryPreferItOverTheCache) {
  plan::Plan plan = launches_plan(4);
  driver.reset();
  EXPECT_TRUE(load_plan(plan, options()).ok() && driver.with_most_shared() == 0);
  std::get<plan::KernelLaunch>(plan.points[0].steps[1].action).shared_bytes = 64;
  ASSERT_TRUE(load_plan(plan, options()).ok());
  EXPECT_EQ(driver.with_most_shared(), 1);
}

TEST_F(CudaEngine, KernelsOverlapWithKernelsInFrontOfThem) {
  plan::Plan plan = launches_plan(4);
  std::get<plan::KernelLaunch>(plan.points[0].steps[1].action).programmatic = true;
  const auto overlapping = [&](bool allowed) {
    LoadOptions load = options();
    load.programmatic_launch = allowed;
    driver.reset();
    const auto engine = load_plan(plan, load);
    EXPECT_TRUE(engine.ok());
    if (engine.ok()) expect_launches(*engine, device_pair(*engine), 5);
    return driver.overlapping();
  };
  EXPECT_EQ(overlapping(true), 1);
  EXPECT_EQ(overlapping(false), 0);
  const plan::Copy copy{testing::arena(256, 16), testing::arena(0, 16)};
  plan.points[0].steps.insert(plan.points[0].steps.begin() + 1, {0, copy});
  EXPECT_EQ(overlapping(true), 0);
}

TEST_F(CudaEngine, TellsOfWritesBesideBuffers) {
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  const TensorType type{DType::kF32, {4}};
  const Tensor in{"x", type, x.data()}, out{"y", type, y.data()};
  for (const uint32_t threads : {4u, 5u}) {
    const auto engine = load_plan(launches_plan(threads), options());
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    auto context = engine->create_context();
    ASSERT_TRUE(context.ok());
    const auto ran = context->run_checked(std::span(&in, 1), std::span(&out, 1));
    EXPECT_EQ(y, (std::vector<float>{3, 6, 9, 12}));
    EXPECT_EQ(ran.ok(), threads == 4);
    if (ran.ok()) continue;
    EXPECT_EQ(ran.error().code, ErrorCode::kVerification);
    EXPECT_EQ(ran.error().message, "wrote 0 bytes behind output 0");
  }
}

TEST_F(CudaEngine, TimesOneGraphOfRunsOnWeightsOfTheirOwn) {
  const auto engine = load_plan(launches_plan(4), options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  auto context = engine->create_context();
  ASSERT_TRUE(context.ok());
  const uint64_t before = driver.live_bytes();
  driver.reset();
  const auto us = context->time_with_cold_weights(0, 5, 2);
  ASSERT_TRUE(us.ok()) << us.error().message;
  EXPECT_DOUBLE_EQ(*us, 2000);  // each of the two kernels takes the fake 1 ms
  EXPECT_EQ(driver.launches(), 2);
  EXPECT_EQ(driver.live_bytes() - before, 5u * 256);
  ASSERT_TRUE(context->time_with_cold_weights(0, 5, 1).ok());
  EXPECT_EQ(driver.live_bytes() - before, 5u * 256);
  EXPECT_FALSE(context->time_with_cold_weights(1, 5, 1).ok());
  EXPECT_FALSE(context->time_with_cold_weights(0, 0, 1).ok());
}

TEST_F(CudaEngine, TimesRunsOnTheSameWeightsWhereTheseOutgrowTheCache) {
  plan::Plan plan = launches_plan(4);
  testing::PlanParts(plan).constant<float>("ballast", std::vector<float>(100));
  const auto engine = load_plan(plan, options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  auto context = engine->create_context();
  const uint64_t before = driver.live_bytes();
  ASSERT_TRUE(context.ok() && context->time_with_cold_weights(0, 5, 2).ok());
  EXPECT_EQ(driver.live_bytes(), before);
}

TEST_F(CudaEngine, DoesNotTimeHostStepsInAGraph) {
  const auto engine = load_plan(launch_plan({2}), options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  auto context = engine->create_context();
  ASSERT_TRUE(context.ok());
  const auto us = context->time_with_cold_weights(0, 4, 1);
  ASSERT_FALSE(us.ok());
  EXPECT_EQ(us.error().code, ErrorCode::kUnsupported);
}

TEST_F(CudaEngine, SaysWhichDeviceAndVersionItNeeds) {
  plan::Plan plan = launch_plan({1});
  plan.origin.device = "NVIDIA A100";
  plan.origin.compute_capability = 80;
  auto engine = load_plan(plan, options());
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, ErrorCode::kVersionMismatch);
  EXPECT_NE(engine.error().message.find(
                "was built for 'NVIDIA A100' (compute capability 8.0), GPU 0 is 'Fake GPU' (9.0)"),
            std::string::npos)
      << engine.error().message;
  plan = launch_plan({1});
  plan.origin.cuda_version = 14010;
  engine = load_plan(plan, options());
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find(
                "was built with CUDA 14.1, the driver serves CUDA 13.0; install a newer driver"),
            std::string::npos)
      << engine.error().message;
}

TEST_F(CudaEngine, RefusesModulesThatAreNoCubins) {
  for (size_t bytes : {size_t{0}, size_t{10}, size_t{63}}) {
    plan::Plan plan = launch_plan({1});
    plan.blobs.back() = SharedBytes::take(std::vector<std::byte>(bytes));
    const auto engine = load_plan(plan, options());
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().code, ErrorCode::kCorruptData) << engine.error().message;
  }
  plan::Plan plan = launch_plan({1});
  std::get<plan::KernelLaunch>(plan.points[0].steps[0].action).entry = "missing";
  const auto engine = load_plan(plan, options());
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("has no function 'missing'"), std::string::npos)
      << engine.error().message;
}

// The driver would read parameters that the step does not have.
TEST_F(CudaEngine, RefusesKernelsWithMoreParametersThanTheStep) {
  plan::Plan plan = launch_plan({1});
  std::get<plan::KernelLaunch>(plan.points[0].steps[0].action).entry = "add_row";
  const auto engine = load_plan(plan, options());
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, ErrorCode::kCorruptData);
  EXPECT_NE(
      engine.error().message.find("'add_row': the kernel has more parameters than the step's 2"),
      std::string::npos)
      << engine.error().message;
}

TEST_F(CudaEngine, BadRequestsDoNotLoseTheContext) {
  const auto engine = load_plan(launch_plan({1}), options());
  ASSERT_TRUE(engine.ok());
  std::vector<float> x = ramp(2, 1), y(x.size());
  ASSERT_FALSE(infer_same_shape(*engine, {2, 4}, x, y).ok());
  expect_affine(*engine, 1, 3);
}

TEST_F(CudaEngine, ThreadsShareItsContexts) {
  LoadOptions shared = options();
  shared.contexts = 3;
  const auto engine = load_plan(launch_plan({1, 4, 8}), shared);
  ASSERT_TRUE(engine.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) expect_affine(*engine, 1 + (t + i) % 8, static_cast<float>(t));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaEngine, TimesARequestsCopiesAndSteps) {
  const auto engine = load_plan(launch_plan({1, 4}), options());
  ASSERT_TRUE(engine.ok());
  auto context = engine->create_context();
  ASSERT_TRUE(context.ok());
  for (const int64_t rows : {3, 4}) {
    std::vector<float> x = ramp(rows, 1), y(x.size());
    const Tensor in = testing::tensor("", {rows, 4}, x), out = testing::tensor("", {rows, 4}, y);
    const auto times = context->time_request({&in, 1}, {&out, 1});
    ASSERT_TRUE(times.ok()) << times.error().message;
    EXPECT_EQ(y, affine_of(x));
    // The last row, its repetition, and the rows before it.
    EXPECT_EQ(times->copy_in_us, rows == 4 ? 1000 : 3000);
    EXPECT_EQ(times->copy_out_us, 1000);
    EXPECT_GT(times->enqueue_us, 0);
    // "double" and an addition, three rounds of each, the branch's side, the last copy.
    EXPECT_GE(times->compute_us, 6000);
    const auto steps = context->time_on_device(1, 5);
    ASSERT_TRUE(steps.ok());
    EXPECT_EQ(times->compute_us, *steps);
  }
}

TEST_F(CudaEngine, LendsMemoryToCallers) {
  auto engine = load_plan(launch_plan({4}), options());
  ASSERT_TRUE(engine.ok());
  const TensorType type{DType::kF32, {4, 4}};
  const auto bytes = static_cast<uint64_t>(type.bytes());
  const uint64_t before = driver.live_bytes();
  for (const MemoryKind kind : {MemoryKind::kHost, MemoryKind::kDevice}) {
    const auto x = engine->allocate(kind, bytes), y = engine->allocate(kind, bytes);
    ASSERT_TRUE(x.ok() && y.ok());
    EXPECT_EQ(driver.live_bytes(), before + 2 * bytes);
    const std::vector<float> given = ramp(4, 7);
    std::vector<float> found(given.size());
    ASSERT_TRUE(engine->copy(x->get(), given.data(), bytes).ok());
    const Tensor in{"", type, x->get(), kind}, out{"", type, y->get(), kind};
    const auto ran = engine->infer({&in, 1}, {&out, 1});
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    ASSERT_TRUE(engine->copy(found.data(), y->get(), bytes).ok());
    EXPECT_EQ(found, affine_of(given));
  }
  EXPECT_EQ(driver.live_bytes(), before);
  const auto refused = engine->allocate(MemoryKind::kDevice, uint64_t{1} << 30);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory) << refused.error().message;
  // Memory may outlive its engine.
  const auto kept = engine->allocate(MemoryKind::kDevice, bytes);
  ASSERT_TRUE(kept.ok());
  engine = Error{ErrorCode::kInternal, "gone"};
  EXPECT_EQ(driver.live_bytes(), bytes);
}

TEST_F(CudaEngine, TellsWhichGpuItIsOn) {
  const auto engine = load_plan(launch_plan({1}), options());
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ(engine->info().device_address, "0000:0f:00.0");
}

}  // namespace
}  // namespace kiln
