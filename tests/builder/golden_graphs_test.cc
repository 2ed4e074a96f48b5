// Golden graphs: tests/builder/<stage>/<pass>/<case>.graph holds a graph, a line `---`, and what
// the pass makes of it (the same text where it must leave it alone). Each case is also run before
// and after with random inputs. KILN_UPDATE=1 in the environment writes the files anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

constexpr char kSeparator[] = "---\n";

struct GoldenCase {
  std::filesystem::path path;
  std::string pass() const { return path.parent_path().filename().string(); }
};

std::vector<GoldenCase> all_cases() {
  std::vector<GoldenCase> cases;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/builder")) {
    if (entry.path().extension() == ".graph") cases.push_back({entry.path()});
  }
  std::sort(cases.begin(), cases.end(),
            [](const GoldenCase& a, const GoldenCase& b) { return a.path < b.path; });
  return cases;
}

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const Pass* find_pass(const std::string& name) {
  for (const Pass& pass : default_pipeline()) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

// Casts round; everything else may differ by the rounding of a reordered sum.
double tolerance_of(const std::string& pass) { return pass == "choose-precision" ? 2e-2 : 1e-5; }

void run_case(const GoldenCase& golden) {
  SCOPED_TRACE(golden.path.string());
  const std::string text = read(golden.path);
  const size_t split = text.find(kSeparator);
  ASSERT_NE(split, std::string::npos) << "no line '---'";
  const size_t start = text.find("graph {");
  auto before = ir::parse_text(text.substr(start, split - start));
  ASSERT_TRUE(before.ok()) << before.error().message;
  ir::Graph graph = *before;
  PassContext context;
  context.options.check_changed_flag = true;
  if (golden.path.stem().string().ends_with("fp16")) context.options.precision = Precision::kFp16;
  const Pass* pass = find_pass(golden.pass());
  ASSERT_NE(pass, nullptr) << "the folder's name is no pass";
  const auto run = run_passes(graph, {pass, 1}, context);
  ASSERT_TRUE(run.ok()) << run.error().message;
  test::expect_same_results(*before, graph, test::random_inputs(*before, 7),
                            tolerance_of(golden.pass()));
  const std::string after = ir::to_text(graph, true);
  if (std::getenv("KILN_UPDATE")) {
    std::ofstream(golden.path) << text.substr(0, start) << ir::to_text(*before, true) << kSeparator
                               << after;
  } else {
    EXPECT_EQ(after, text.substr(split + sizeof(kSeparator) - 1));
  }
}

TEST(GoldenGraphs, EveryPassMakesWhatItsFilesSay) {
  const auto cases = all_cases();
  ASSERT_FALSE(cases.empty());
  for (const GoldenCase& golden : cases) run_case(golden);
}

}  // namespace
}  // namespace kiln
