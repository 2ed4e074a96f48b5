// Attention must be matched in every layer of every exported transformer: a miss is a failure.
#include <gtest/gtest.h>

#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "tests/builder/imported_model.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

int count_regions(const ir::Graph& graph, ir::Region::Kind kind) {
  int count = 0;
  for (ir::NodeId id : graph.topological_order()) {
    const auto* region = std::get_if<ir::Region>(&graph.node(id).op);
    count += region && region->kind == kind;
  }
  return count;
}

std::string misses(const PassContext& context) {
  std::string text;
  for (const auto& miss : context.near_misses) {
    if (miss.rule != "fuse-attention") continue;
    text += "\n  " + miss.producer + " -> " + miss.consumer + ": " + miss.reason;
  }
  return text;
}

class AttentionModels : public testing::TestWithParam<std::string> {};

TEST_P(AttentionModels, EveryLayerIsOneRegionAndResultsStay) {
  const auto imported = test::import_tiny(GetParam(), 3);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ir::Graph graph = *imported;
  PassContext context;
  context.options.check_changed_flag = true;
  const auto run = run_passes(graph, default_pipeline(), context);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(count_regions(graph, ir::Region::Kind::kAttention),
            test::tiny_models()[GetParam()]["attention_layers"].get<int>())
      << misses(context);
  test::expect_same_results(*imported, graph, test::random_inputs(graph, 3), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Tiny, AttentionModels, testing::ValuesIn(test::tiny_model_names()),
                         test::parameter_name);

}  // namespace
}  // namespace kiln
