// Attention must be matched in every layer of every exported transformer: a miss is a failure.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "builder/import/onnx/import.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "formats/onnx/read_model.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

constexpr char kFolder[] = "tests/models/tiny/";

// Every symbolic extent as a number: 3 rows, 16 tokens.
ShapePoint point_of(const nlohmann::json& model) {
  ShapePoint point{.name = "b3",
                   .batch = 3,
                   .shape_set = "",
                   .inputs = {},
                   .batch_axes = {},
                   .fixed_values = {}};
  for (const auto& input : model["inputs"]) {
    Shape shape;
    for (const auto& extent : input["shape"]) {
      shape.push_back(extent.is_number() ? extent.get<int64_t>() : extent == "batch" ? 3 : 16);
    }
    point.inputs[input["name"]] = shape;
    point.batch_axes[input["name"]] = 0;
  }
  return point;
}

int count_regions(const ir::Graph& graph, ir::Region::Kind kind) {
  int count = 0;
  for (ir::NodeId id : graph.topological_order()) {
    const auto* region = std::get_if<ir::Region>(&graph.node(id).op);
    count += region && region->kind == kind;
  }
  return count;
}

std::string all_misses(const PassContext& context) {
  std::string text;
  for (const auto& miss : context.near_misses) {
    if (miss.rule != "fuse-attention") continue;
    text += "\n  " + miss.producer + " -> " + miss.consumer + ": " + miss.reason;
  }
  return text;
}

class AttentionModels : public testing::TestWithParam<std::string> {};

std::vector<std::string> all_models() {
  std::vector<std::string> names;
  const auto models = nlohmann::json::parse(std::ifstream(kFolder + std::string("models.json")));
  for (const auto& [name, model] : models.items()) names.push_back(name);
  return names;
}

TEST_P(AttentionModels, EveryLayerIsOneRegionAndResultsStay) {
  const auto models = nlohmann::json::parse(std::ifstream(kFolder + std::string("models.json")));
  const auto& description = models[GetParam()];
  const auto model = onnx::read_model(kFolder + GetParam() + ".onnx");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto imported = onnx_import::import_onnx(*model, point_of(description), {});
  if (!imported.ok() && imported.error().code == ErrorCode::kUnsupported) {
    GTEST_SKIP() << imported.error().message;
  }
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ir::Graph graph = imported->graph;
  PassContext context;
  context.options.check_changed_flag = true;
  const auto run = run_passes(graph, default_pipeline(), context);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(count_regions(graph, ir::Region::Kind::kAttention),
            description["attention_layers"].get<int>())
      << all_misses(context);
  test::expect_same_results(imported->graph, graph, test::random_inputs(graph, 3), 1e-4);
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, AttentionModels, testing::ValuesIn(all_models()), test_name);

}  // namespace
}  // namespace kiln
