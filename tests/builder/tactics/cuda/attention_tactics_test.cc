#include <gtest/gtest.h>

#include "builder/cuda/build_tools.h"
#include "builder/tactics/cuda/attention_provider.h"
#include "builder/tactics/cuda/cudnn_attention.h"
#include "tests/builder/imported_model.h"
#include "tests/builder/precision/narrowed.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

using test::narrowed;

class AttentionTactics : public testing::TestWithParam<std::string> {};

// Every layer is a problem that cuDNN has words for, its heads split and joined without a kernel.
TEST_P(AttentionTactics, EveryLayerIsOneCuDnnProblemAndResultsStay) {
  const auto imported = test::import_tiny(GetParam(), 3);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const ir::Graph before = narrowed(*imported, false), after = narrowed(*imported, true);
  int layers = 0;
  for (ir::NodeId id : after.topological_order()) {
    const auto& region = std::get<ir::Region>(after.node(id).op);
    if (region.kind != ir::Region::Kind::kAttention) continue;
    layers += 1;
    const auto problem = attention_problem(*region.body);
    EXPECT_TRUE(problem.ok()) << after.node(id).name << ": " << problem.error().message;
  }
  EXPECT_EQ(layers, test::tiny_models()[GetParam()]["attention_layers"].get<int>());
  EXPECT_LT(after.topological_order().size(), before.topological_order().size());
  // A mask is rounded to f16 when it was f32.
  test::expect_same_results(before, after, test::random_inputs(before, 3), 2e-3);
}

TEST_P(AttentionTactics, OurKernelTakesEveryLayer) {
  const DeviceInfo device;
  const CudaTools tools;
  for (const int64_t batch : {1, 3}) {  // a batch of 1 leaves strides open
    const auto imported = test::import_tiny(GetParam(), batch);
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    const ir::Graph graph = narrowed(*imported, true);
    for (ir::NodeId id : graph.topological_order()) {
      const auto& region = std::get<ir::Region>(graph.node(id).op);
      if (region.kind != ir::Region::Kind::kAttention) continue;
      std::string refusal;
      EXPECT_FALSE(attention_candidates({region, {}, {}, {}, device, {}, &tools}, refusal).empty())
          << "batch " << batch << ", " << graph.node(id).name << ": " << refusal;
    }
  }
}

std::vector<std::string> transformers() {
  std::vector<std::string> names;
  for (const std::string& name : test::tiny_model_names()) {
    if (test::tiny_models()[name]["attention_layers"].get<int>() > 0) names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tiny, AttentionTactics, testing::ValuesIn(transformers()),
                         test::parameter_name);

}  // namespace
}  // namespace kiln
