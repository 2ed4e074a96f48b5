// The checks that every engine of target cuda must pass, on a fake driver.
#include <thread>

#include "tests/engine/cuda/every_step_plan.h"
#include "tests/engine/cuda/fake_cublaslt.h"
#include "tests/engine/cuda/fake_cudnn.h"
#include "tests/engine/cuda/fake_driver.h"
#include "tests/engine/cuda/runtime_checks.h"
#include "tests/engine/runtime_fixture.h"

namespace kiln::testing {
namespace {

class FakeRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    kernel_budget = 1'000'000;
    FakeDriver::instance().reset();
    const auto libraries = FakeDriver::instance().libraries();
    libraries->cublaslt_api = cublaslt.api();
    libraries->cudnn_api = cudnn.api();
    subject.libraries = std::make_shared<WrappedLibraries>(libraries);
    const auto wrote = write_engine(every_step_plan({1, 4, 16}), folder / "m.engine");
    ASSERT_TRUE(wrote.ok()) << wrote.error().message;
    subject.load = [this](LoadOptions options) {
      options.host_kernels = fake_kernels();
      return Engine::load(folder / "m.engine", options);
    };
    subject.most_rows = 16;
    subject.caller_bytes = 16 << 10;
  }
  void TearDown() override {
    EXPECT_EQ(subject.libraries->live(), 0);
    EXPECT_EQ(FakeDriver::instance().live_bytes(), 0u);
  }
  const FakeCublasLt cublaslt;
  const cuda::FakeCudnn cudnn;
  ScratchFolder folder;
  Subject subject;
};

TEST_F(FakeRuntime, Threads) { check_threads(subject, 16, 100); }

// Each captures graphs with calls of the libraries, whose handles they share.
TEST_F(FakeRuntime, ThreadsMakeContexts) {
  LoadOptions options;
  options.cuda_libraries = subject.libraries;
  const auto engine = subject.load(options);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      auto context = engine->create_context();
      ASSERT_TRUE(context.ok()) << context.error().message;
      std::vector<float> x = ramp(3, static_cast<float>(t)), y(x.size());
      const Tensor in = tensor("x", {3, 4}, x), out = tensor("y", {3, 4}, y);
      ASSERT_TRUE(context->enqueue({&in, 1}, {&out, 1}).ok());
      EXPECT_EQ(y, affine_of(x));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(FakeRuntime, Streams) { check_streams(subject); }
TEST_F(FakeRuntime, Addresses) { check_addresses(subject, 20); }
TEST_F(FakeRuntime, Failures) {
  using Failure = WrappedLibraries::Failure;
  EXPECT_GT(check_failures(subject, {Failure::kOutOfMemory, Failure::kLaunchFailed}), 60);
}
TEST_F(FakeRuntime, ProgrammaticLaunch) { check_programmatic_launch(subject); }
TEST_F(FakeRuntime, LostContext) { check_lost_context(subject); }
TEST_F(FakeRuntime, LoadCycles) { check_load_cycles(subject, 20); }

TEST_F(FakeRuntime, TakesTheMemoryThatItTells) {
  for (int contexts : {1, 3}) {
    const MemoryUse used = measure_memory(subject, contexts);
    EXPECT_EQ(used.measured, used.planned);
    EXPECT_EQ(used.by_function.at("cuMemAlloc_v2"), used.planned);
  }
}

}  // namespace
}  // namespace kiln::testing
