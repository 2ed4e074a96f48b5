#include "engine/cuda/open_devices.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/engine/cuda/fake_cublaslt.h"
#include "tests/engine/cuda/fake_driver.h"

namespace kiln::testing {
namespace {

struct Handles {
  std::atomic<int> alive = 0, most = 0, made = 0;
};

Handles& handles() {
  static Handles handles;
  return handles;
}

std::shared_ptr<const cuda::Libraries> counting_libraries() {
  handles().alive = handles().most = handles().made = 0;
  auto libraries = FakeDriver::instance().libraries();
  cuda::CublasLtApi api = FakeCublasLt().api();
  api.create = [](cublasLtHandle_t* handle) {
    const int alive = ++handles().alive;
    handles().most = std::max<int>(handles().most, alive);
    *handle = reinterpret_cast<cublasLtHandle_t>(static_cast<uintptr_t>(++handles().made));
    return CUBLAS_STATUS_SUCCESS;
  };
  api.destroy = [](cublasLtHandle_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // as one that waits for the GPU
    --handles().alive;
    return CUBLAS_STATUS_SUCCESS;
  };
  libraries->cublaslt_api = api;
  return libraries;
}

Result<> make_handle(const cuda::Device& device) {
  return device.cublaslt().use(
      [](const cuda::CublasLtApi&, cublasLtHandle_t) -> Result<> { return Ok(); });
}

TEST(OpenDevices, AreSharedWhileTheyAreOpen) {
  const auto libraries = counting_libraries();
  auto first = cuda::Device::open(0, libraries);
  auto second = cuda::Device::open(0, libraries);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->get(), second->get());
  ASSERT_TRUE(make_handle(**first).ok());
  ASSERT_TRUE(make_handle(**second).ok());
  EXPECT_EQ(handles().made, 1);
  first->reset();
  EXPECT_EQ(handles().alive, 1);
  second->reset();
  EXPECT_EQ(handles().alive, 0);
  ASSERT_TRUE(make_handle(*cuda::Device::open(0, libraries).value()).ok());
  EXPECT_EQ(handles().made, 2);
}

TEST(OpenDevices, NoHandleEndsWhileAnEngineIsThereThreads) {
  const auto libraries = counting_libraries();
  std::atomic<int> ended_early = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        const auto device = cuda::Device::open(0, libraries).value();
        if (!make_handle(*device).ok() || handles().alive != 1) ++ended_early;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended_early, 0);
  EXPECT_EQ(handles().most, 1);
  EXPECT_EQ(handles().alive, 0);
}

TEST(OpenDevices, AFailureIsForgotten) {
  const auto libraries = counting_libraries();
  EXPECT_FALSE(cuda::Device::open(7, libraries).ok());
  EXPECT_FALSE(cuda::Device::open(7, libraries).ok());
  EXPECT_TRUE(cuda::Device::open(0, libraries).ok());
}

}  // namespace
}  // namespace kiln::testing
