// One engine of real kernels, shared by many threads.
#include <gtest/gtest.h>

#include <barrier>
#include <map>
#include <random>
#include <thread>

#include "tests/engine/host/network_plan.h"
#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

using testing::kClasses;
using testing::kWidth;

plan::Plan network_plan() { return testing::network_plan({1, 2, 4, 8, 16, 32, 64}); }

std::vector<float> request(int64_t rows, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<size_t>(rows * kWidth));
  for (float& value : x) value = static_cast<float>(random() % 2001) / 1000 - 1;
  return x;
}

std::vector<float> infer(const Engine& engine, int64_t rows, uint32_t seed) {
  std::vector<float> x = request(rows, seed), y(static_cast<size_t>(rows * kClasses), -1);
  const Tensor in = testing::tensor("x", {rows, kWidth}, x),
               out = testing::tensor("y", {rows, kClasses}, y);
  const auto ran = engine.infer({&in, 1}, {&out, 1});
  if (!ran) ADD_FAILURE() << ran.error().message;
  return y;
}

class SharedEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded =
        testing::load_plan(network_plan(), {.contexts = 3, .host_kernels = host_kernels()});
    ASSERT_TRUE(loaded) << loaded.error().message;
    engine_.emplace(*std::move(loaded));
  }

  std::optional<Engine> engine_;
};

TEST_F(SharedEngine, ComputesTheNetwork) {
  const auto y = infer(*engine_, 3, 9), expected = testing::network_outputs(request(3, 9));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-5);
}

TEST_F(SharedEngine, ThreadsEqualSerial) {
  constexpr int kThreads = 16, kCalls = 1'000, kSeeds = 8;
  const std::vector<int64_t> sizes = {1, 2, 3, 5, 8, 17, 33, 37, 64};
  std::map<std::pair<int64_t, uint32_t>, std::vector<float>> serial;
  for (int64_t rows : sizes) {
    for (uint32_t seed = 0; seed < kSeeds; ++seed) {
      serial[{rows, seed}] = infer(*engine_, rows, seed);
    }
  }
  std::atomic<int> different = 0;
  std::barrier start(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        std::mt19937 random(static_cast<unsigned>(thread));
        start.arrive_and_wait();
        for (int call = 0; call < kCalls; ++call) {
          const int64_t rows = sizes[random() % sizes.size()];
          const uint32_t seed = random() % kSeeds;
          if (infer(*engine_, rows, seed) != serial.at({rows, seed})) ++different;
        }
      });
    }
  }
  EXPECT_EQ(different, 0);
}

TEST_F(SharedEngine, RowsDoNotDependOnTheirCompany) {
  for (int64_t rows : {3, 5, 37, 64}) {
    const auto x = request(rows, 11), together = infer(*engine_, rows, 11);
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<float> one(x.begin() + r * kWidth, x.begin() + (r + 1) * kWidth), y(kClasses);
      const Tensor in = testing::tensor("x", {1, kWidth}, one),
                   out = testing::tensor("y", {1, kClasses}, y);
      ASSERT_TRUE(engine_->infer({&in, 1}, {&out, 1}));
      for (int64_t c = 0; c < kClasses; ++c) {
        EXPECT_NEAR(together[r * kClasses + c], y[c], 1e-6) << rows << " " << r;
      }
    }
  }
}

}  // namespace
}  // namespace kiln
