// The whole pipeline keeps what models compute: all passes, each one off in turn, and none.
#include "builder/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <set>

#include "builder/pipeline/pass_driver.h"
#include "tests/builder/imported_model.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

void expect_regions_only(const ir::Graph& graph) {
  for (ir::NodeId id : graph.topological_order()) {
    EXPECT_TRUE(std::holds_alternative<ir::Region>(graph.node(id).op)) << graph.node(id).name;
  }
}

// The graph after the pipeline without the disabled passes.
ir::Graph run_without(const ir::Graph& imported, const std::vector<std::string>& disabled) {
  ir::Graph graph = imported;
  PassContext context;
  context.options.disabled = disabled;
  const auto run = run_passes(graph, default_pipeline(), context);
  EXPECT_TRUE(run.ok()) << run.error().message;
  expect_regions_only(graph);
  return graph;
}

TEST(Pipeline, NamesAreUniqueAndKebabCase) {
  std::set<std::string_view> names;
  for (const Pass& pass : default_pipeline()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_EQ(pass.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string_view::npos);
  }
}

class PipelineModels : public testing::TestWithParam<std::string> {};

TEST_P(PipelineModels, EachPassOffInTurnAndNone) {
  const auto imported = test::import_tiny(GetParam(), 2);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const auto inputs = test::random_inputs(*imported, 11);
  std::vector<std::string> all;
  for (const Pass& pass : default_pipeline()) {
    if (pass.required) continue;
    all.emplace_back(pass.name);
    SCOPED_TRACE(all.back());
    test::expect_same_results(*imported, run_without(*imported, {all.back()}), inputs, 1e-4);
  }
  test::expect_same_results(*imported, run_without(*imported, all), inputs, 1e-4);
}

TEST_P(PipelineModels, TheSameGraphEveryTime) {
  const auto imported = test::import_tiny(GetParam(), 2);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(to_text(run_without(*imported, {})), to_text(run_without(*imported, {})));
}

INSTANTIATE_TEST_SUITE_P(Tiny, PipelineModels, testing::ValuesIn(test::tiny_model_names()),
                         test::parameter_name);

}  // namespace
}  // namespace kiln
