// Engines for a GPU that is elsewhere, from the timing cache of a build there. A fake cuBLASLt and
// a fake clock stand in for that GPU; kernels are compiled for it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "builder/builder.h"
#include "builder/cuda/cuda_target.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/device/device_fields.h"
#include "builder/emit/emit_plan.h"
#include "builder/import/onnx/import.h"
#include "builder/import/onnx/shape_points.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "builder/tactics/schedule_regions.h"
#include "engine/engine.h"
#include "engine/host_kernels.h"
#include "formats/engine_file/read_engine.h"
#include "formats/onnx/read_model.h"
#include "tests/engine/cuda/fake_cublaslt.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

constexpr const char* kModel = "apps/demo/digits.onnx";
const std::vector<int64_t> kBatches = {1, 4};

// Every candidate is right; the times follow no order.
class FakeClock : public Judge {
 public:
  Result<> begin(const TacticQuery&) override { return Ok(); }
  Timing judge(const Lowered&, double) override {
    judged = judged * 1103515245 + 12345;
    return {.median_us = 1 + static_cast<double>(judged >> 16 & 0xff), .verified = true};
  }
  uint32_t judged = 1;
};

class CrossBuild : public ::testing::Test {
 protected:
  // Once for all tests: it compiles every candidate.
  static void SetUpTestSuite() {
    if (codegen::compiler_version().ok()) gpu_ = std::make_unique<GpuBuild>(build_on_gpu());
  }
  static void TearDownTestSuite() { gpu_.reset(); }

  void SetUp() override {
    const auto compiler = codegen::compiler_version();
    if (!compiler.ok()) GTEST_SKIP() << compiler.error().message;
    cache_ = gpu_->cache;
    options_.batches = kBatches;
    options_.target = BuildTarget::kCuda;
    options_.target_device = "sm_90";
    options_.timing_cache = folder_ / "t.json";
    options_.output = folder_ / "m.engine";
  }

  // What a build on the GPU finds out, and the steps that it arrives at.
  struct GpuBuild {
    TimingCache cache;
    plan::Plan plan;
  };

  static DeviceInfo h200() {
    return device_of("NVIDIA H200", {{"compute_capability", 90},
                                     {"multiprocessors", 132},
                                     {"driver_version", 13000},
                                     {"cuda_version", CUDA_VERSION},
                                     {"cublaslt_version", 130100}});
  }

  static GpuBuild build_on_gpu() {
    const testing::FakeCublasLt cublaslt;
    GpuBuild result;
    CudaTools tools;
    tools.device = cublaslt.device();
    tools.compiler = std::make_shared<KernelCompiler>(90);
    const DeviceInfo device = h200();
    FakeClock clock;
    SelectionContext selection{cuda_providers(), &clock, result.cache,
                               environment_of(device, false), &tools};
    const auto model = onnx::read_model(kModel);
    BuildOptions options;
    options.batches = kBatches;
    const auto points = onnx_import::plan_shape_points(*model, options);
    PlanBuilder builder;
    for (const ShapePoint& point : *points) {
      ir::Graph graph = std::move(onnx_import::import_onnx(*model, point)->graph);
      PassContext passes;
      passes.options.library_layouts = true;
      EXPECT_TRUE(run_passes(graph, default_pipeline(), passes).ok());
      const auto scheduled =
          schedule_regions(std::move(graph), point, device, {}, selection, nullptr);
      EXPECT_TRUE(scheduled.ok()) << scheduled.error().message;
      builder.add_point(scheduled->schedule);
    }
    TimingCache::Environment& environment = result.cache.environments[selection.environment];
    environment.answers = tools.answers->known();
    environment.device_name = device.name;
    environment.device = device_fields(device);
    result.plan = std::move(builder).finish();
    return result;
  }

  Result<BuildResult> build() {
    std::filesystem::remove(options_.timing_cache);  // saving adds to what is there
    EXPECT_TRUE(save_timing_cache(options_.timing_cache, cache_).ok());
    return kiln::build(kModel, options_);
  }

  std::string refusal() {
    const auto built = build();
    EXPECT_FALSE(built.ok());
    EXPECT_FALSE(std::filesystem::exists(options_.output));
    return built.ok() ? "" : built.error().message;
  }

  const testing::ScratchFolder folder_;
  TimingCache cache_;
  BuildOptions options_;
  static inline std::unique_ptr<GpuBuild> gpu_;
};

void expect_same(const std::vector<SharedBytes>& a, const std::vector<SharedBytes>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size()) << i;
    EXPECT_EQ(std::memcmp(a[i].data(), b[i].data(), a[i].size()), 0) << i;
  }
}

TEST_F(CrossBuild, HasTheStepsOfTheBuildThatWasMeasured) {
  const plan::Plan& want = gpu_->plan;
  for (const char* device : {"sm_90", "NVIDIA H200"}) {
    options_.target_device = device;
    const auto built = build();
    ASSERT_TRUE(built.ok()) << built.error().message;
    const auto plan = read_engine(options_.output);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(plan->points, want.points);
    expect_same(plan->blobs, want.blobs);
    EXPECT_EQ(plan->origin.device, "NVIDIA H200");
    EXPECT_EQ(plan->origin.compute_capability, 90u);
    EXPECT_EQ(plan->origin.cublaslt_version, 130100u);
    EXPECT_FALSE(plan->origin.verified);
  }
  // Nothing was asked, so there is nothing new to keep.
  EXPECT_EQ(load_timing_cache(options_.timing_cache).cache, cache_);
}

TEST_F(CrossBuild, IsRefusedUntilItIsVerified) {
  ASSERT_TRUE(build().ok());
  const auto engine = Engine::load(options_.output, {.host_kernels = host_kernels()});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, ErrorCode::kVerification);
  EXPECT_NE(engine.error().message.find("engine-build --onnx MODEL --verify-engine"),
            std::string::npos)
      << engine.error().message;
}

TEST_F(CrossBuild, ListsAllThatTheCacheDoesNotKnow) {
  TimingCache::Environment& environment = cache_.environments.begin()->second;
  const TimingCache whole = cache_;
  size_t regions = 0;
  for (auto& [region, candidates] : environment.timings) regions += candidates.empty() ? 0 : 1;
  environment.timings.clear();
  std::string message = refusal();
  EXPECT_NE(message.find("t.json' does not know "), std::string::npos) << message;
  EXPECT_NE(message.find(" at b1, "), std::string::npos) << message;
  EXPECT_NE(message.find(" at b4; build the model once on that GPU"), std::string::npos) << message;
  EXPECT_GE(static_cast<size_t>(std::count(message.begin(), message.end(), ',')) + 1, regions);
  // Timings alone do not do: what cuBLASLt offers is part of the choice.
  cache_ = whole;
  std::erase_if(cache_.environments.begin()->second.answers,
                [](const auto& answer) { return answer.first.starts_with("cublaslt"); });
  message = refusal();
  EXPECT_NE(message.find("does not know "), std::string::npos) << message;
  // Precision is measured, too.
  cache_ = whole;
  options_.precision = Precision::kFp16;
  message = refusal();
  EXPECT_NE(message.find("the precision that the regions need at b1"), std::string::npos)
      << message;
}

TEST_F(CrossBuild, SaysWhatTheCacheIsFor) {
  const TimingCache whole = cache_;
  options_.target_device = "sm_80";
  EXPECT_EQ(refusal(), "--target sm_80: timing cache '" + options_.timing_cache.string() +
                           "': describes no GPU 'sm_80' that this builder can use, only 'NVIDIA "
                           "H200 (sm_90)'; build once on the GPU with this timing cache");
  options_.target_device = "sm_90";
  cache_.environments.begin()->second.device.clear();  // as schema 1 had it
  EXPECT_NE(refusal().find("was recorded by another version of Kiln, in another precision, or "
                           "without its description"),
            std::string::npos);
  cache_ = whole;
  TimingCache::Environment other = whole.environments.begin()->second;
  other.device_name = "NVIDIA H100";
  cache_.environments[environment_of(device_of(other.device_name, other.device), false)] = other;
  EXPECT_NE(refusal().find("several GPUs 'sm_90': 'NVIDIA H100', 'NVIDIA H200'; give --target one"),
            std::string::npos);
  cache_ = {};
  other.device_name = "NVIDIA H200";
  other.device["cuda_version"] = 14020;
  cache_.environments[environment_of(device_of(other.device_name, other.device), false)] = other;
  EXPECT_NE(refusal().find("was measured with kernels of CUDA 14.2, this builder compiles with"),
            std::string::npos);
  options_.timing_cache.clear();
  const auto built = kiln::build(kModel, options_);
  ASSERT_FALSE(built.ok());
  EXPECT_NE(built.error().message.find("--target sm_90: names a GPU that is elsewhere: give"),
            std::string::npos)
      << built.error().message;
}

// A GPU's environment goes on to be used when its driver is the newest of several.
TEST_F(CrossBuild, TakesTheNewestVersionsOfOneGpu) {
  TimingCache::Environment old = cache_.environments.begin()->second;
  old.device["driver_version"] = 12080;
  old.timings.clear();
  cache_.environments[environment_of(device_of(old.device_name, old.device), false)] = old;
  const auto built = build();
  ASSERT_TRUE(built.ok()) << built.error().message;
  EXPECT_EQ(read_engine(options_.output)->origin.driver_version, 13000u);
}

}  // namespace
}  // namespace kiln
