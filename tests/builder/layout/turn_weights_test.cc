#include "builder/layout/turn_weights.h"

#include <gtest/gtest.h>

#include "builder/fuse/region.h"
#include "tests/builder/imported_model.h"
#include "tests/builder/precision/narrowed.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

struct Counts {
  int by_rows = 0, by_columns = 0;  // matmuls with a constant of rank 2 on the right
};

Counts count(const ir::Graph& graph) {
  Counts counts;
  for (ir::NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    const ir::Graph& body = *std::get<ir::Region>(node.op).body;
    const ir::NodeId anchor = fuse::anchor_of(body);
    const auto* op =
        anchor == ir::kNoNode ? nullptr : std::get_if<ir::MatMul>(&body.node(anchor).op);
    if (op == nullptr) continue;
    const auto inputs = body.inputs();
    const auto at = std::find(inputs.begin(), inputs.end(), body.node(anchor).inputs[1]);
    if (at == inputs.end()) continue;
    const ir::Value& right = graph.value(node.inputs[static_cast<size_t>(at - inputs.begin())]);
    if (!right.constant || right.type.rank() != 2) continue;
    (op->transpose_b ? counts.by_columns : counts.by_rows) += 1;
  }
  return counts;
}

class WeightModels : public testing::TestWithParam<std::string> {};

TEST_P(WeightModels, EveryWeightIsStoredByColumnsAndResultsStay) {
  const auto imported = test::import_tiny(GetParam(), 2);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const ir::Graph before = test::narrowed(*imported, false);
  ir::Graph after = before;
  PassContext context;
  context.options.library_layouts = true;
  const auto changed = layout::turn_weights(after, context);
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_TRUE(after.verify().ok());
  EXPECT_EQ(*changed, count(before).by_rows > 0);
  EXPECT_EQ(count(after).by_rows, 0);
  EXPECT_EQ(count(after).by_columns, count(before).by_rows + count(before).by_columns);
  EXPECT_GT(count(after).by_columns, 0);
  test::expect_same_results(before, after, test::random_inputs(before, 3), 2e-3);
  // There is nothing left to do.
  const auto again = layout::turn_weights(after, context);
  EXPECT_TRUE(again.ok() && !*again);
}

std::vector<std::string> transformers() {
  std::vector<std::string> names;
  for (const std::string& name : test::tiny_model_names()) {
    if (test::tiny_models()[name]["attention_layers"].get<int>() > 0) names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tiny, WeightModels, testing::ValuesIn(transformers()),
                         test::parameter_name);

// Two products share the weights; one also adds them up, so that they stay as they are.
ir::Graph two_products(bool also_added) {
  const std::string body =
      "graph {\n  input %0 : f16[2x3] \"x\"\n  input %1 : f16[3x3] \"w\"\n"
      "  %2 = matmul{transpose_a=0, transpose_b=0}(%0, %1) : f16[2x3] ; \"m\"\n"
      "  output %2 \"y\"\n}";
  const std::string sum =
      "graph {\n  input %0 : f16[3x3] \"w\"\n  %1 = neg(%0) : f16[3x3] ; \"n\"\n"
      "  output %1 \"y\"\n}";
  const auto region = [](const std::string& text, ir::Region::Kind kind) {
    return ir::Region{kind, std::make_shared<ir::Graph>(ir::parse_text(text).value()), {}, ""};
  };
  ir::Graph graph;
  std::mt19937 random(5);
  const TensorType square{DType::kF16, {3, 3}}, wide{DType::kF16, {2, 3}};
  ir::ValueId x = graph.add_input("x", wide);
  const ir::ValueId w = graph.add_constant("w", square, test::random_tensor(square, random).bytes);
  for (int i = 0; i < 2; ++i) {
    x = graph.result(graph.add_typed_node(
        "product", {}, region(body, ir::Region::Kind::kContraction), {x, w}, std::span(&wide, 1)));
  }
  graph.mark_output(x);
  if (also_added) {
    graph.mark_output(graph.result(graph.add_typed_node(
        "other", {}, region(sum, ir::Region::Kind::kLoop), {w}, std::span(&square, 1))));
  }
  return graph;
}

TEST(TurnWeights, TurnsWhatProductsAloneShareOnce) {
  PassContext context;
  context.options.library_layouts = true;
  for (bool also_added : {false, true}) {
    const ir::Graph before = two_products(also_added);
    ir::Graph after = before;
    const auto changed = layout::turn_weights(after, context);
    ASSERT_TRUE(changed.ok()) << changed.error().message;
    EXPECT_EQ(*changed, !also_added);
    EXPECT_EQ(count(after).by_columns, also_added ? 0 : 2);
    test::expect_same_results(before, after, test::random_inputs(before, 3), 1e-3);
    if (also_added) continue;
    std::vector<ir::ValueId> weights;
    for (ir::NodeId id : after.topological_order()) weights.push_back(after.node(id).inputs[1]);
    EXPECT_EQ(weights.at(0), weights.at(1));
  }
}

TEST(TurnWeights, LeavesTheHostsOrderAlone) {
  ir::Graph graph = two_products(false);
  PassContext context;
  const auto changed = layout::turn_weights(graph, context);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
  EXPECT_EQ(count(graph).by_rows, 2);
}

}  // namespace
}  // namespace kiln
