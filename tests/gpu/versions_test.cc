// Engines for another GPU, driver or library: both values, and what to do.
#include "engine/host_kernels.h"
#include "formats/engine_file/read_engine.h"
#include "formats/engine_file/write_engine.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/scratch_folder.h"

namespace kiln::testing {
namespace {

class Versions : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    const auto file = build_engine(small_engine("digits-fp16"));
    ASSERT_TRUE(file.ok()) << file.error().message;
    auto plan = read_engine(*file);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    plan_ = *std::move(plan);
  }

  // Loads the plan and expects a refusal that has all of these texts.
  void expect_refused(std::initializer_list<const char*> texts, LoadOptions options = {}) {
    const ScratchFolder folder;
    const auto wrote = write_engine(plan_, folder / "m.engine");
    ASSERT_TRUE(wrote.ok()) << wrote.error().message;
    options.host_kernels = host_kernels();
    const auto engine = Engine::load(folder / "m.engine", options);
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().code, ErrorCode::kVersionMismatch) << engine.error().message;
    for (const char* text : texts) {
      EXPECT_NE(engine.error().message.find(text), std::string::npos) << engine.error().message;
    }
  }

  plan::Plan plan_;
};

TEST_F(Versions, AnotherComputeCapability) {
  plan_.origin.compute_capability = 80;
  expect_refused({"compute capability 8.0", "build the engine again on this GPU"});
}

TEST_F(Versions, ANewerCuda) {
  plan_.origin.cuda_version = 99010;
  expect_refused({"was built with CUDA 99.1, the driver serves CUDA", "install a newer driver"});
}

TEST_F(Versions, AnotherCudnn) {
  LoadOptions options;
  const auto libraries = std::make_shared<WrappedLibraries>(cuda::Libraries::system());
  libraries->pretend_cudnn(90001);
  options.cuda_libraries = libraries;
  expect_refused({"found 90001", "build the engine again"}, options);
}

// What an algorithm is made of means the same to other versions, as long as they have it: then the
// answers are the same. Where they refuse it, both versions are named.
TEST_F(Versions, AnotherCublasLt) {
  const auto file = build_engine(small_engine("bert-fp16"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  LoadOptions options;
  options.host_kernels = host_kernels();
  const auto usual = Engine::load(*file, options);
  ASSERT_TRUE(usual.ok()) << usual.error().message;
  const auto libraries = std::make_shared<WrappedLibraries>(cuda::Libraries::system());
  libraries->pretend_cublaslt(42);
  options.cuda_libraries = libraries;
  const auto other = Engine::load(*file, options);
  if (!other.ok()) {
    std::printf("refused: %s\n", other.error().message.c_str());
    EXPECT_EQ(other.error().code, ErrorCode::kVersionMismatch) << other.error().message;
    EXPECT_NE(other.error().message.find("cuBLASLt 42"), std::string::npos);
    EXPECT_NE(other.error().message.find("build the engine again"), std::string::npos);
    return;
  }
  const auto request = make_up_request(*usual, 8, 1);
  const auto want = infer(*usual, request), got = infer(*other, request);
  ASSERT_TRUE(want.ok() && got.ok());
  EXPECT_TRUE(got->outputs == want->outputs);
}

}  // namespace
}  // namespace kiln::testing
