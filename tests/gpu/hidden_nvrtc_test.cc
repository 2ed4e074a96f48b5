// Engines run where the compiler is not: its name leads the loader to files that are no libraries.
#include <algorithm>
#include <set>

#include "formats/engine_file/read_engine.h"
#include "tests/apps/run_program.h"
#include "tests/gpu/gpu_fixture.h"

namespace kiln::testing {
namespace {

class HiddenNvrtc : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    for (const char* name : {"libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13"}) {
      folder_.write(name, "no library\n");
    }
  }

  // A program that lies beside this one, with NVRTC hidden from it and the loader's work logged.
  ProgramResult run(const std::string& program, std::vector<std::string> arguments) {
    const char* path = std::getenv("LD_LIBRARY_PATH");
    const std::string found = path == nullptr ? "" : std::string(":") + path;
    const auto own = std::filesystem::read_symlink("/proc/self/exe");
    std::vector<std::string> words = {
        "LD_LIBRARY_PATH=" + folder_.path().string() + found, "LD_DEBUG=files",
        "LD_DEBUG_OUTPUT=" + (folder_ / "loader").string(), own.parent_path() / program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run_program("/usr/bin/env", words);
  }

  // Libraries whose initialisers the loader called, by their paths.
  std::set<std::string> loaded() const {
    constexpr std::string_view kCalling = "calling init: ";
    std::set<std::string> libraries;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
      if (!file.path().filename().string().starts_with("loader")) continue;
      std::ifstream lines(file.path());
      for (std::string line; std::getline(lines, line);) {
        const size_t at = line.find(kCalling);
        if (at != std::string::npos) libraries.insert(line.substr(at + kCalling.size()));
      }
    }
    return libraries;
  }

  ScratchFolder folder_;
};

bool has(const std::set<std::string>& libraries, const char* part) {
  return std::any_of(libraries.begin(), libraries.end(), [&](const std::string& library) {
    return library.find(part) != std::string::npos;
  });
}

TEST_F(HiddenNvrtc, IsHidden) {
  const auto built =
      run("engine-build", {"--onnx", "apps/demo/digits.onnx", "--output", folder_ / "m.engine",
                           "--target", "cuda", "--batches", "1"});
  EXPECT_NE(built.exit_code, 0);
  EXPECT_NE(built.err.find("nvrtc"), std::string::npos) << built.err;
}

TEST_F(HiddenNvrtc, EnginesRunWithout) {
  bool has_matmul = false, has_cudnn = false;
  for (const EngineRecipe& recipe : small_engines()) {
    SCOPED_TRACE(recipe.name);
    const auto file = build_engine(recipe);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto plan = read_engine(*file);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    for (const plan::Step& step : plan->points.front().steps) {
      has_matmul = has_matmul || std::holds_alternative<plan::Matmul>(step.action);
      has_cudnn = has_cudnn || std::holds_alternative<plan::CudnnGraph>(step.action);
    }
    const auto ran = run("engine-run", {*file, "--batch", std::to_string(recipe.most_rows())});
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  }
  EXPECT_TRUE(has_matmul);
  EXPECT_TRUE(has_cudnn);
  const auto libraries = loaded();
  EXPECT_TRUE(has(libraries, "libcuda.so"));
  EXPECT_TRUE(has(libraries, "libcublasLt.so"));
  EXPECT_TRUE(has(libraries, "libcudnn.so"));
  EXPECT_FALSE(has(libraries, "nvrtc"));
}

}  // namespace
}  // namespace kiln::testing
