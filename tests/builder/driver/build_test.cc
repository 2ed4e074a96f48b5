#include <gtest/gtest.h>

#include "builder/builder.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

// A build that measures nothing anew: the engine is a function of model, options and timing cache.
TEST(Build, GivesEqualEnginesForEqualInputs) {
  const testing::ScratchFolder folder, elsewhere;
  const auto built = [&](const std::filesystem::path& model, const std::filesystem::path& output,
                         const std::filesystem::path& cache) {
    BuildOptions options;
    options.target = BuildTarget::kHost;
    options.batches = {1, 4};
    options.output = output;
    options.timing_cache = cache;
    const auto result = build(model, options);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return testing::read_text(output);
  };
  const std::filesystem::path demo = std::filesystem::absolute("apps/demo/digits.onnx");
  const std::filesystem::path cache = folder / "t.json";
  const std::string first = built(demo, folder / "a.engine", cache);
  const std::string times = testing::read_text(cache);
  const std::string second = built(demo, folder / "b.engine", cache);
  EXPECT_EQ(testing::read_text(cache), times);

  std::filesystem::copy_file(demo, elsewhere / "digits.onnx");
  std::filesystem::copy_file(cache, elsewhere / "other.json");
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(elsewhere.path());
  const std::string third = built("digits.onnx", "c.engine", "other.json");
  std::filesystem::current_path(here);

  ASSERT_FALSE(first.empty());
  // Not EXPECT_EQ, which would print them.
  EXPECT_TRUE(first == second);
  EXPECT_TRUE(second == third);
}

}  // namespace
}  // namespace kiln
