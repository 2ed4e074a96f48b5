// The messages of models that cannot be imported.
#include <gtest/gtest.h>

#include <limits>

#include "builder/import/onnx/import.h"
#include "builder/import/onnx/shape_points.h"
#include "tests/builder/import/model_fixtures.h"

namespace kiln::onnx_import {
namespace {

Result<Imported> import(const onnx::Model& m) {
  const auto points = plan_shape_points(m, {});
  if (!points.ok()) return points.error();
  return import_onnx(m, points->front());
}

std::string error_of(const onnx::Model& m) {
  const auto imported = import(m);
  return imported.ok() ? "" : imported.error().message;
}

const onnx::ValueInfo kX = value("x", DType::kF32, {2});
const onnx::ValueInfo kI = value("i", DType::kI64, {2});

TEST(ImportErrors, MixedTypes) {
  EXPECT_EQ(error_of(model({kX, kI}, {node("add_1", "Add", {"x", "i"}, {"y"})}, {"y"})),
            "import 'm.onnx': node 'add_1' (Add): input 1 is i64[2], input 0 is f32[2]; ONNX wants "
            "one type");
}

TEST(ImportErrors, UnknownOperator) {
  const auto m = model({kX}, {node("n", "NoSuchOp", {"x"}, {"y"})}, {"y"});
  const std::string message = error_of(m);
  EXPECT_NE(message.find("import 'm.onnx': node 'n' (NoSuchOp): "), std::string::npos) << message;
  EXPECT_EQ(import(m).error().code, ErrorCode::kUnsupported);
}

TEST(ImportErrors, UnknownDomainPointsToPlugins) {
  auto m = model({kX}, {node("n", "Thing", {"x"}, {"y"}, {}, "com.example")}, {"y"});
  m.opset_imports["com.example"] = 1;
  EXPECT_NE(error_of(m).find("load a plugin that offers 'com.example.Thing' with --plugin"),
            std::string::npos)
      << error_of(m);
}

// A loop over x whose body gives its own condition on, with this trip count ("": none).
onnx::Model endless_loop(const std::string& trip_count) {
  auto body = std::make_shared<onnx::Graph>();
  body->inputs = {value("round", DType::kI64, {}), value("go", DType::kBool, {}),
                  value("state", DType::kF32, {2})};
  body->nodes = {node("on", "Identity", {"go"}, {"go_on"}), node("r", "Relu", {"state"}, {"next"})};
  body->outputs = {value("go_on", DType::kBool, {}), value("next", DType::kF32, {2})};
  return model({kX, value("n", DType::kI64, {})},
               {node("loop", "Loop", {trip_count, "", "x"}, {"y"}, {attribute("body", body)})},
               {"y"});
}

TEST(ImportErrors, LoopsThatNeverEnd) {
  EXPECT_EQ(error_of(endless_loop("")),
            "import 'm.onnx': node 'loop' (Loop): the loop never ends: it has no trip count, and "
            "its body never changes the condition; give it either");
  EXPECT_EQ(error_of(endless_loop("n")), "");
}

TEST(ImportErrors, EveryNodeIsListedAtOnce) {
  const auto m = model({kX},
                       {node("a", "NoSuchOp", {"x"}, {"y"}), node("ok", "Relu", {"y"}, {"z"}),
                        node("b", "NorThis", {"z"}, {"w"})},
                       {"w"});
  const auto points = plan_shape_points(m, {});
  const auto check = check_onnx(m, points->front());
  ASSERT_TRUE(check.ok());
  ASSERT_EQ(check->unsupported.size(), 2u);
  EXPECT_EQ(check->unsupported[0].node, "a");
  EXPECT_EQ(check->unsupported[1].node, "b");
  EXPECT_NE(error_of(m).find("2 nodes cannot be imported"), std::string::npos);
}

TEST(ImportErrors, PadsThatNoExtentHolds) {
  auto m = model({kX}, {node("n", "Pad", {"x", "pads"}, {"y"})}, {"y"});
  m.graph.initializers.push_back(
      tensor<int64_t>("pads", DType::kI64, {2}, {std::numeric_limits<int64_t>::min(), 0}));
  EXPECT_EQ(error_of(m),
            "import 'm.onnx': node 'n' (Pad): pads has the entry -9223372036854775808, expected "
            "-2^60 to 2^60");
}

TEST(ImportErrors, MissingAttribute) {
  EXPECT_EQ(error_of(model({kX}, {node("c", "Concat", {"x", "x"}, {"y"})}, {"y"})),
            "import 'm.onnx': node 'c' (Concat): the required attribute 'axis' is missing");
}

TEST(ImportErrors, AttributeOfTheWrongKind) {
  const auto m = model(
      {kX}, {node("c", "Concat", {"x", "x"}, {"y"}, {attribute("axis", std::string("0"))})}, {"y"});
  EXPECT_EQ(error_of(m),
            "import 'm.onnx': node 'c' (Concat): attribute 'axis' is of kind string, expected int");
}

TEST(ImportErrors, ReshapeThatDoesNotFit) {
  auto m = model({kX}, {node("r", "Reshape", {"x", "shape"}, {"y"})}, {"y"});
  m.graph.initializers.push_back(tensor<int64_t>("shape", DType::kI64, {1}, {3}));
  EXPECT_EQ(error_of(m),
            "import 'm.onnx': node 'r' (Reshape): input 2 has 2 elements, which do not fill the "
            "shape 3");
}

TEST(ImportErrors, AShapeThatDependsOnAnInputNamesIt) {
  const auto m = model({kX, kI}, {node("e", "Expand", {"x", "i"}, {"y"})}, {"y"});
  EXPECT_EQ(error_of(m),
            "import 'm.onnx': node 'e' (Expand): shape must be known when building, but depends on "
            "'i'; fix that input's value for this shape point");
  const auto points = plan_shape_points(m, {});
  EXPECT_EQ(check_onnx(m, points->front())->needed_values, std::vector<std::string>{"i"});
}

TEST(ImportErrors, HugeConstantsAreRefusedUnmade) {
  auto m = model({}, {node("f", "ConstantOfShape", {"shape"}, {"y"})}, {"y"});
  m.graph.initializers.push_back(tensor<int64_t>("shape", DType::kI64, {1}, {int64_t{1} << 40}));
  EXPECT_NE(error_of(m).find("node 'f' (ConstantOfShape): the result f32[1099511627776] has more "
                             "than 2^36 elements"),
            std::string::npos)
      << error_of(m);
}

TEST(ImportErrors, AFunctionsInsideIsNamedToo) {
  auto m = model({kX}, {node("call", "Twice", {"x"}, {"y"}, {}, "local")}, {"y"});
  m.opset_imports["local"] = 1;
  onnx::Function twice;
  twice.name = "Twice";
  twice.domain = "local";
  twice.inputs = {"a"};
  twice.outputs = {"b"};
  twice.opset_imports[""] = 18;
  twice.nodes = {
      node("inner", "Transpose", {"a"}, {"b"}, {attribute("perm", std::vector<int64_t>{0, 0})})};
  m.functions.push_back(twice);
  EXPECT_NE(error_of(m).find("node 'call' (local::Twice): node 'inner' (Transpose): "),
            std::string::npos)
      << error_of(m);
}

TEST(ImportErrors, AnOutputOfAnotherTypeThanDeclared) {
  auto m = model({kX}, {node("r", "Relu", {"x"}, {"y"})}, {"y"});
  m.graph.outputs[0].dtype = DType::kI32;
  EXPECT_EQ(error_of(m), "import 'm.onnx': output 'y' is declared i32, its node makes f32");
}

}  // namespace
}  // namespace kiln::onnx_import
