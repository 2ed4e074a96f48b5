// One engine, many threads.
#include <gtest/gtest.h>

#include <barrier>
#include <random>
#include <thread>

#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

using testing::affine_of;
using testing::infer_same_shape;
using testing::ramp;

// Runs body(thread) on `count` threads at once.
void on_threads(int count, const std::function<void(int)>& body) {
  std::barrier start(count);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < count; ++thread) {
    threads.emplace_back([&start, &body, thread] {
      start.arrive_and_wait();
      body(thread);
    });
  }
}

TEST(Threads, MixedBatchesEqualTheExpectedRows) {
  const auto engine = testing::load_plan(testing::affine_plan({1, 2, 4, 8}),
                                         {.contexts = 4, .host_kernels = testing::fake_kernels()});
  ASSERT_TRUE(engine);
  std::atomic<int> wrong = 0;
  on_threads(16, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    testing::kernel_budget = 1'000'000;
    for (int call = 0; call < 1'000; ++call) {
      const int64_t rows = 1 + random() % 8;
      std::vector<float> x = ramp(rows, static_cast<float>(random() % 1000)), y(x.size());
      if (!infer_same_shape(*engine, {rows, 4}, x, y) || y != affine_of(x)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, OwnContextsDoNotMeet) {
  const auto engine = testing::load_plan(testing::affine_plan({1, 4}));
  ASSERT_TRUE(engine);
  std::atomic<int> wrong = 0;
  on_threads(8, [&](int thread) {
    auto context = engine->create_context();
    for (int call = 0; call < 200; ++call) {
      const int64_t rows = 1 + call % 4;
      std::vector<float> x = ramp(rows, static_cast<float>(thread * 1000 + call)), y(x.size());
      const Tensor in = testing::tensor("x", {rows, 4}, x),
                   out = testing::tensor("y", {rows, 4}, y);
      if (!context->enqueue({&in, 1}, {&out, 1}) || y != affine_of(x)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// x -> x through a kernel that takes a while.
plan::Plan slow_plan() {
  plan::Plan plan = testing::scale_plan({testing::point_of("static", 0, {DType::kF32, {1}})}, -1);
  std::get<plan::HostOperation>(plan.points[0].steps[0].action).operation =
      testing::PlanParts(plan).operation(Operation{"slow", {}});
  return plan;
}

int most_at_once(int contexts) {
  const auto engine = testing::load_plan(
      slow_plan(), {.contexts = contexts, .host_kernels = testing::fake_kernels()});
  EXPECT_TRUE(engine);
  testing::slow_most = 0;
  std::atomic<int> wrong = 0;
  on_threads(4, [&](int thread) {
    for (int call = 0; call < 3; ++call) {
      std::vector<float> x = {static_cast<float>(thread)}, y(1);
      if (!infer_same_shape(*engine, {1}, x, y) || y != x) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  return testing::slow_most;
}

TEST(Threads, InferWaitsForAContext) {
  EXPECT_EQ(most_at_once(1), 1);
  EXPECT_EQ(most_at_once(2), 2);
}

TEST(Threads, InferWithoutContextsIsAnError) {
  const auto engine = testing::load_plan(testing::affine_plan({1}),
                                         {.contexts = 0, .host_kernels = testing::fake_kernels()});
  ASSERT_TRUE(engine);
  std::vector<float> x(4), y(4);
  const auto ran = infer_same_shape(*engine, {1, 4}, x, y);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(engine->create_context());
}

// Mappings and descriptors of this process.
std::pair<size_t, size_t> held() {
  std::ifstream maps("/proc/self/maps");
  size_t engines = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(".engine") != std::string::npos) ++engines;
  }
  const std::filesystem::directory_iterator begin("/proc/self/fd"), end;
  return {engines, static_cast<size_t>(std::distance(begin, end))};
}

TEST(Engine, LoadingAHundredTimesKeepsNothing) {
  const auto before = held();
  for (int i = 0; i < 100; ++i) {
    const auto engine = testing::load_plan(
        testing::affine_plan({1, 4}), {.contexts = 2, .host_kernels = testing::fake_kernels()});
    ASSERT_TRUE(engine);
    EXPECT_EQ(held().first, before.first + 1);
    std::vector<float> x = ramp(3, 1), y(12);
    ASSERT_TRUE(infer_same_shape(*engine, {3, 4}, x, y));
  }
  EXPECT_EQ(held(), before);
}

}  // namespace
}  // namespace kiln
