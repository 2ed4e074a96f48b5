#include "tests/gpu/gpu_fixture.h"

#include <algorithm>
#include <future>
#include <map>

#include "builder/builder.h"
#include "engine/host_kernels.h"
#include "tests/environment.h"
#include "tests/scratch_folder.h"

namespace kiln::testing {
namespace {

using Built = Result<std::filesystem::path>;

// Engines that this program has built. Filled by the main thread alone.
struct Shelf {
  ScratchFolder folder;
  std::map<std::string, Built> engines;
};

Shelf& shelf() {
  static Shelf shelf;
  return shelf;
}

Built build_one(const EngineRecipe& recipe) {
  BuildOptions options;
  options.output = shelf().folder / (recipe.name + ".engine");
  options.target = BuildTarget::kCuda;
  options.precision = recipe.precision;
  options.max_batch = recipe.batches.empty() ? recipe.max_batch : 0;
  options.batches = recipe.batches;
  options.quiet = true;
  KILN_ASSIGN_OR_RETURN(const BuildResult built, build(recipe.model, options));
  return built.engine;
}

}  // namespace

const std::vector<EngineRecipe>& small_engines() {
  static const std::vector<EngineRecipe> recipes = [] {
    const std::filesystem::path tiny = "tests/models/tiny", digits = "apps/demo/digits.onnx";
    return std::vector<EngineRecipe>{
        {"digits", digits, Precision::kFp32, 64},
        {"digits-fp16", digits, Precision::kFp16, 0, {2}},
        {"resnet", tiny / "resnet_torchscript.onnx", Precision::kFp32, 64},
        {"bert", tiny / "bert_torchscript.onnx", Precision::kFp32, 64},
        {"bert-fp16", tiny / "bert_torchscript.onnx", Precision::kFp16, 0, {8}},
    };
  }();
  return recipes;
}

const EngineRecipe& small_engine(const std::string& name) {
  const auto& recipes = small_engines();
  return *std::find_if(recipes.begin(), recipes.end(),
                       [&](const EngineRecipe& recipe) { return recipe.name == name; });
}

std::vector<EngineRecipe> extra_engines() {
  std::vector<EngineRecipe> recipes;
  const std::filesystem::path folder = extra_models_folder();
  if (folder.empty()) return recipes;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".onnx") continue;
    recipes.push_back({file.path().stem(), file.path(), Precision::kFp16, 0, {1, 8}});
  }
  return recipes;
}

void build_engines(const std::vector<EngineRecipe>& recipes) {
  std::map<std::string, std::future<Built>> pending;
  for (const EngineRecipe& recipe : recipes) {
    if (shelf().engines.contains(recipe.name)) continue;
    pending[recipe.name] = std::async(std::launch::async, build_one, recipe);
  }
  for (auto& [name, built] : pending) shelf().engines.emplace(name, built.get());
}

Built build_engine(const EngineRecipe& recipe) {
  // One test by itself builds what it needs, many have everything built at once.
  if (::testing::UnitTest::GetInstance()->test_to_run_count() > 3) build_engines(small_engines());
  build_engines({recipe});
  return shelf().engines.at(recipe.name);
}

std::string no_gpu() {
  const auto device = cuda::Device::open(0, cuda::Libraries::system());
  return device.ok() ? "" : device.error().message;
}

void OnGpu::SetUp() {
  auto device = cuda::Device::open(0, cuda::Libraries::system());
  if (!device.ok()) GTEST_SKIP() << "no GPU here: " << device.error().message;
  device_ = *std::move(device);
}

Subject OnGpu::subject_of(const EngineRecipe& recipe) {
  Subject subject;
  subject.libraries = std::make_shared<WrappedLibraries>(cuda::Libraries::system());
  subject.load = [recipe](LoadOptions options) -> Result<Engine> {
    KILN_ASSIGN_OR_RETURN(const auto file, build_engine(recipe));
    options.host_kernels = host_kernels();
    return Engine::load(file, options);
  };
  subject.most_rows = recipe.most_rows();
  subject.caller_bytes = 64 << 20;
  const auto built = build_engine(recipe);
  EXPECT_TRUE(built.ok()) << built.error().message;
  return subject;
}

}  // namespace kiln::testing
