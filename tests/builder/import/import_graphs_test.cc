// What imported graphs look like: shape arithmetic is gone, composites are spelled out.
#include <gtest/gtest.h>

#include "builder/import/onnx/import.h"
#include "builder/import/onnx/shape_points.h"
#include "tests/builder/import/model_fixtures.h"

namespace kiln::onnx_import {
namespace {

ir::Graph import(const onnx::Model& m, const BuildOptions& options = {}) {
  const auto points = plan_shape_points(m, options);
  EXPECT_TRUE(points.ok()) << points.error().message;
  auto imported = import_onnx(m, points->front());
  EXPECT_TRUE(imported.ok()) << imported.error().message;
  return std::move(imported->graph);
}

template <class Op>
int count(const ir::Graph& graph) {
  int found = 0;
  for (ir::NodeId id : graph.topological_order()) {
    found += std::holds_alternative<Op>(graph.node(id).op);
  }
  return found;
}

TEST(ImportGraphs, ShapeArithmeticDisappears) {
  // reshape(x, concat(shape(x)[0:1], [-1]))
  auto m =
      model({value("x", DType::kF32, {"n", 3, 4})},
            {node("s", "Shape", {"x"}, {"shape"}), node("g", "Gather", {"shape", "zero"}, {"n"}),
             node("u", "Unsqueeze", {"n", "axes"}, {"n1"}),
             node("c", "Concat", {"n1", "rest"}, {"target"}, {attribute("axis", int64_t{0})}),
             node("r", "Reshape", {"x", "target"}, {"y"})},
            {"y"});
  m.graph.initializers = {tensor<int64_t>("zero", DType::kI64, {}, {0}),
                          tensor<int64_t>("axes", DType::kI64, {1}, {0}),
                          tensor<int64_t>("rest", DType::kI64, {1}, {-1})};
  BuildOptions options;
  options.batches = {5};
  const ir::Graph graph = import(m, options);
  ASSERT_EQ(graph.topological_order().size(), 1u);
  EXPECT_EQ(graph.type(graph.outputs()[0]).shape, (Shape{5, 12}));
}

TEST(ImportGraphs, AFixedInputStaysAnInput) {
  const auto m = model({value("x", DType::kF32, {2}), value("shape", DType::kI64, {1})},
                       {node("e", "Expand", {"x", "shape"}, {"y"})}, {"y"});
  BuildOptions options;
  FixedValue two;
  two.type.dtype = DType::kI64;
  two.type.shape = {1};
  two.bytes.resize(8);
  two.bytes[0] = std::byte{2};
  options.fixed_values[""]["shape"] = two;
  const ir::Graph graph = import(m, options);
  EXPECT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.type(graph.outputs()[0]).shape, (Shape{2}));
}

TEST(ImportGraphs, ValuesKeepTheModelsNames) {
  const auto m =
      model({value("x", DType::kF32, {2})},
            {node("a", "Relu", {"x"}, {"hidden"}), node("b", "Exp", {"hidden"}, {"y"})}, {"y"});
  const ir::Graph graph = import(m);
  const auto order = graph.topological_order();
  ASSERT_EQ(order.size(), 2u);
  EXPECT_EQ(graph.value(graph.result(order[0])).name, "hidden");
  EXPECT_EQ(graph.node(order[0]).origins, std::vector<std::string>{"a"});
  EXPECT_EQ(graph.output_name(0), "y");
}

TEST(ImportGraphs, OneValueMayBeTwoOutputs) {
  const auto m =
      model({value("x", DType::kF32, {2})},
            {node("a", "Identity", {"x"}, {"y"}), node("b", "Identity", {"x"}, {"z"})}, {"y", "z"});
  const ir::Graph graph = import(m);
  ASSERT_EQ(graph.outputs().size(), 2u);
  EXPECT_EQ(graph.output_name(0), "y");
  EXPECT_EQ(graph.output_name(1), "z");
}

TEST(ImportGraphs, CompositesAreSpelledOut) {
  auto m = model({value("x", DType::kF16, {2, 8})},
                 {node("ln", "LayerNormalization", {"x", "w"}, {"y"})}, {"y"});
  m.graph.initializers = {
      tensor<uint16_t>("w", DType::kF16, {8}, std::vector<uint16_t>(8, 0x3c00))};
  const ir::Graph graph = import(m);
  EXPECT_EQ(count<ir::Reduce>(graph), 2);
  EXPECT_EQ(count<ir::Opaque>(graph), 0);
  for (ir::NodeId id : graph.topological_order()) {
    if (!std::holds_alternative<ir::Reduce>(graph.node(id).op)) continue;
    EXPECT_EQ(graph.type(graph.result(id)).dtype, DType::kF32) << "statistics are f32";
  }
}

onnx::Attribute branch(const char* name, std::vector<onnx::Node> nodes, const char* output) {
  auto body = std::make_shared<onnx::Graph>();
  body->nodes = std::move(nodes);
  onnx::ValueInfo info;
  info.name = output;
  body->outputs = {info};
  return attribute(name, std::shared_ptr<const onnx::Graph>(body));
}

TEST(ImportGraphs, ARuntimeIfTakesItsCapturesAsInputs) {
  const auto m = model(
      {value("c", DType::kBool, {}), value("x", DType::kF32, {2}), value("y", DType::kF32, {2})},
      {node("if", "If", {"c"}, {"z"},
            {branch("then_branch", {node("t", "Add", {"x", "y"}, {"tz"})}, "tz"),
             branch("else_branch", {node("e", "Neg", {"y"}, {"ez"})}, "ez")})},
      {"z"});
  const ir::Graph graph = import(m);
  ASSERT_EQ(count<ir::If>(graph), 1);
  const ir::Node& node = graph.node(graph.topological_order()[0]);
  EXPECT_EQ(node.inputs.size(), 3u);  // the condition, x and y
  EXPECT_EQ(std::get<ir::If>(node.op).else_body->inputs().size(), 2u);
}

TEST(ImportGraphs, AConstantIfLeavesOneBranch) {
  auto m = model({value("x", DType::kF32, {2})},
                 {node("if", "If", {"c"}, {"z"},
                       {branch("then_branch", {node("t", "Exp", {"x"}, {"tz"})}, "tz"),
                        branch("else_branch", {node("e", "NoSuchOp", {"x"}, {"ez"})}, "ez")})},
                 {"z"});
  m.graph.initializers = {tensor<uint8_t>("c", DType::kBool, {}, {1})};
  const ir::Graph graph = import(m);
  EXPECT_EQ(count<ir::If>(graph), 0);
  EXPECT_EQ(count<ir::Pointwise>(graph), 1);
}

}  // namespace
}  // namespace kiln::onnx_import
