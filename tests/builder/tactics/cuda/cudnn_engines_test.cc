// Against the real library, which plans for a GPU that is only described; skipped where there is
// none.
#include <gtest/gtest.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "builder/tactics/cuda/cudnn_plans.h"

namespace kiln {
namespace {

constexpr char kH200[] = R"({
  "version": 1, "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "totalGlobalMem": 150122987520, "smClockRateKHz": 1980000,
  "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "cudaDeviceId": 0})";

// 3x3, 64 channels, channels last, with bias and ReLU.
CudnnProblem convolution(DType dtype) {
  CudnnProblem problem;
  const Shape image = {8, 64, 56, 56}, image_strides = {200704, 1, 3584, 64};
  const int64_t x = problem.add({dtype, image, image_strides});
  const int64_t w = problem.add({dtype, {64, 64, 3, 3}, {576, 1, 192, 64}});
  const int64_t sums = problem.add({DType::kF32, image, image_strides, true});
  const int64_t bias = problem.add({dtype, {1, 64, 1, 1}, {64, 1, 64, 64}});
  const int64_t shifted = problem.add({DType::kF32, image, image_strides, true});
  const int64_t y = problem.add({dtype, image, image_strides});
  problem.operations.emplace_back(CudnnConvolution{x, w, sums, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  CudnnPointwise add;
  add.x = sums;
  add.b = bias;
  add.y = shifted;
  problem.operations.emplace_back(add);
  CudnnPointwise relu;
  relu.mode = CUDNN_POINTWISE_RELU_FWD;
  relu.x = shifted;
  relu.y = y;
  problem.operations.emplace_back(relu);
  return problem;
}

class CudnnEngines : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    // cuDNN keeps a handle of cuBLASLt and more until the process ends, out of LeakSanitizer's
    // sight. Our own leaks show in the tests on a fake library.
    __lsan_disable();
#endif
    auto opened = cuda::open_cudnn();
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    cudnn_ = *opened;
    auto target = CudnnTarget::of_description(cudnn_, kH200);
    if (!target.ok()) GTEST_SKIP() << target.error().message;
    target_ = std::move(*target);
  }

  void TearDown() override {
#ifdef __SANITIZE_ADDRESS__
    __lsan_enable();
#endif
  }

  cuda::CudnnApi cudnn_;
  std::optional<CudnnTarget> target_;
};

TEST_F(CudnnEngines, AKeyMakesTheSamePlanAgain) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    const CudnnProblem problem = convolution(dtype);
    const auto engines = cudnn_engines(*target_, problem, {3, false});
    ASSERT_TRUE(engines.ok()) << engines.error().message;
    ASSERT_FALSE(engines->empty()) << to_string(dtype);
    for (const std::string& engine : *engines) {
      const auto first = make_cudnn_plan(*target_, problem, engine);
      const auto again = make_cudnn_plan(*target_, problem, engine);
      ASSERT_TRUE(first.ok() && again.ok()) << engine;
      EXPECT_EQ(first->json, again->json);
      EXPECT_EQ(first->workspace_bytes, again->workspace_bytes);
    }
  }
}

TEST_F(CudnnEngines, F32TakesNoEngineThatRoundsToTf32) {
  const CudnnProblem problem = convolution(DType::kF32);
  const auto exact = cudnn_engines(*target_, problem, {64, false});
  const auto all = cudnn_engines(*target_, problem, {64, true});
  ASSERT_TRUE(exact.ok() && all.ok());
  EXPECT_LT(exact->size(), all->size());
  for (const std::string& engine : *all) {
    const auto plan = make_cudnn_plan(*target_, problem, engine);
    if (!plan.ok()) continue;
    const bool is_exact = std::find(exact->begin(), exact->end(), engine) != exact->end();
    EXPECT_NE(plan->tf32, is_exact) << engine;
  }
}

TEST_F(CudnnEngines, RefusesTextsThatAreNoEngine) {
  for (const char* text :
       {"", "10", "e", "e1.", "e1.2", "e1.2=", "e1.2=x", "e99999", "e1.9999=1"}) {
    const auto plan = make_cudnn_plan(*target_, convolution(DType::kF16), text);
    EXPECT_FALSE(plan.ok()) << text;
  }
}

}  // namespace
}  // namespace kiln
