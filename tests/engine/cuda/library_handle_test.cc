#include "engine/cuda/library_handle.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/engine/cuda/fake_cudnn.h"
#include "tests/engine/cuda/fake_driver.h"

namespace kiln::cuda {
namespace {

// cuDNN's handles are for one thread at a time.
TEST(LibraryHandle, IsUsedByOneOfManyThreadsAtATime) {
  const FakeCudnn fake;
  const auto libraries = testing::FakeDriver::instance().libraries();
  libraries->cudnn_api = fake.api();
  const auto device = Device::open(0, libraries).value();
  std::atomic<int> inside = 0, most = 0, failed = 0;
  const auto work = [&](const CudnnApi&, cudnnHandle_t) -> Result<> {
    most = std::max<int>(most, ++inside);
    std::this_thread::yield();
    --inside;
    return Ok();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) failed += device->cudnn().use(work).ok() ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(most, 1);
}

TEST(LibraryHandle, IsTriedAgainAfterAFailure) {
  FakeCudnn fake;
  const auto libraries = testing::FakeDriver::instance().libraries();
  libraries->cudnn_api = fake.api();
  const auto device = Device::open(0, libraries).value();
  const auto number = [](const CudnnApi&, cudnnHandle_t) -> Result<int> { return 7; };
  fake.failing_call = 0;
  const auto failed = device->cudnn().use(number);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("making a handle of cuDNN"), std::string::npos)
      << failed.error().message;
  // A handle that can have no stream is none.
  fake.failing_call = fake.calls + 1;
  const auto unbound = device->cudnn().use(number);
  ASSERT_FALSE(unbound.ok());
  EXPECT_NE(unbound.error().message.find("giving cuDNN a stream"), std::string::npos)
      << unbound.error().message;
  EXPECT_EQ(fake.stream, nullptr);
  const auto made = device->cudnn().use(number);
  EXPECT_EQ(fake.stream, device->capture_stream());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(*made, 7);
}

}  // namespace
}  // namespace kiln::cuda
