// Damaged engines for target cuda, on fakes of the driver and the libraries.
#include <gtest/gtest.h>

#include "tests/engine/cuda/every_step_plan.h"
#include "tests/engine/cuda/fake_cublaslt.h"
#include "tests/engine/cuda/fake_cudnn.h"
#include "tests/engine/cuda/fake_driver.h"
#include "tests/engine/cuda/wrapped_libraries.h"
#include "tests/engine/damage.h"

namespace kiln {
namespace {

using testing::every_step_plan;
using testing::WrappedLibraries;

TEST(DamagedCudaEngine, ResealedPlansRunOrFail) {
  testing::FakeDriver& driver = testing::FakeDriver::instance();
  const testing::FakeCublasLt cublaslt;
  const cuda::FakeCudnn cudnn;
  const auto libraries = driver.libraries();
  libraries->cublaslt_api = cublaslt.api();
  libraries->cudnn_api = cudnn.api();
  LoadOptions options{.host_kernels = testing::fake_kernels()};
  const auto wrapped = std::make_shared<WrappedLibraries>(libraries);
  options.cuda_libraries = wrapped;
  const plan::Plan plan = every_step_plan({1, 4});
  const auto whole = testing::load_plan(plan, options);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_GT(cudnn.executed.size(), 0u);
  EXPECT_GT(cublaslt.matmuls, 0);
  const int held = wrapped->live();
  const int loaded = testing::load_and_run_damaged(plan, options, 10'000, 8, [&] {
    wrapped->fail_call(2'000, WrappedLibraries::Failure::kLaunchFailed);  // ends loops
  });
  EXPECT_GT(loaded, 0);
  EXPECT_EQ(wrapped->live(), held);
}

}  // namespace
}  // namespace kiln
