#include <gtest/gtest.h>

#include <algorithm>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/tactics/cuda/attention_provider.h"
#include "builder/tactics/cuda/cudnn_attention.h"
#include "builder/tactics/finish_lowering.h"
#include "tests/builder/imported_model.h"
#include "tests/builder/precision/narrowed.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

using test::narrowed;

class AttentionTactics : public testing::TestWithParam<std::string> {};

// Every layer is a problem that cuDNN has words for, its heads split and joined without a kernel;
// but for masks of shifted windows, which begin anew with every image.
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
    if (problem.ok()) continue;
    EXPECT_EQ(problem.error().message, "the mask repeats along the batch") << after.node(id).name;
    EXPECT_TRUE(GetParam().starts_with("swin")) << after.node(id).name;
  }
  EXPECT_EQ(layers, test::tiny_models()[GetParam()]["attention_layers"].get<int>());
  EXPECT_LT(after.topological_order().size(), before.topological_order().size());
  // A mask is rounded to f16 when it was f32.
  test::expect_same_results(before, after, test::random_inputs(before, 3), 2e-3);
}

bool only_moves(const ir::Region& region) {
  return std::ranges::all_of(region.body->topological_order(), [&](ir::NodeId id) {
    const ir::Op& op = region.body->node(id).op;
    return std::holds_alternative<ir::Slice>(op) || std::holds_alternative<ir::Reshape>(op) ||
           std::holds_alternative<ir::Transpose>(op);
  });
}

// Heads are split and joined inside the region, where rows that a mask hides are zeroed as well.
TEST_P(AttentionTactics, NothingMovesBesideALayer) {
  for (const int64_t batch : {1, 3}) {
    SCOPED_TRACE("batch " + std::to_string(batch));
    const auto imported = test::import_tiny(GetParam(), batch);
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    const ir::Graph graph = narrowed(*imported, true);
    for (ir::NodeId id : graph.topological_order()) {
      const ir::Node& node = graph.node(id);
      if (std::get<ir::Region>(node.op).kind != ir::Region::Kind::kAttention) continue;
      for (const ir::Use& use : graph.value(node.outputs[0]).uses) {
        EXPECT_EQ(std::get<ir::Region>(graph.node(use.node).op).kind,
                  ir::Region::Kind::kContraction);
      }
      for (ir::ValueId input : node.inputs) {
        const ir::NodeId producer = graph.value(input).producer;
        if (producer == ir::kNoNode) continue;
        EXPECT_FALSE(only_moves(std::get<ir::Region>(graph.node(producer).op)))
            << graph.node(producer).name;
      }
    }
  }
}

// The launches of the first tactic of ours for the first layer.
TEST_P(AttentionTactics, ALayerIsOneLaunch) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  DeviceInfo device;
  CudaTools tools;
  tools.compiler = std::make_shared<KernelCompiler>(90);
  const auto imported = test::import_tiny(GetParam(), 3);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const ir::Graph graph = narrowed(*imported, true);
  for (ir::NodeId id : graph.topological_order()) {
    const auto& region = std::get<ir::Region>(graph.node(id).op);
    if (region.kind != ir::Region::Kind::kAttention) continue;
    TacticQuery query{region, {}, {}, {}, device, {}, &tools};
    for (ir::ValueId input : region.body->inputs()) {
      query.inputs.push_back(region.body->type(input));
    }
    query.outputs = {region.body->type(region.body->outputs()[0])};
    query.constants.resize(query.inputs.size());
    std::string refusal;
    const auto tactics = attention_candidates(query, refusal);
    ASSERT_FALSE(tactics.empty()) << refusal;
    auto lowered = attention_lower(query, tactics[0]);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    ASSERT_TRUE(finish_lowering(query, *lowered).ok());
    ASSERT_EQ(lowered->steps.size(), 1u);
    const auto* launch = std::get_if<LocalLaunch>(&lowered->steps[0]);
    ASSERT_NE(launch, nullptr);
    EXPECT_EQ(launch->entry, "kiln_attention");
    EXPECT_TRUE(lowered->temporaries.empty());
    return;
  }
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
