#include "builder/import/onnx/shape_points.h"

#include <gtest/gtest.h>

#include "tests/builder/import/model_fixtures.h"

namespace kiln::onnx_import {
namespace {

onnx::Model two_inputs() {
  return model(
      {value("ids", DType::kI64, {"batch", "seq"}), value("mask", DType::kI64, {"batch", "seq"})},
      {}, {});
}

std::vector<std::string> names(const std::vector<ShapePoint>& points) {
  std::vector<std::string> result;
  for (const ShapePoint& point : points) result.push_back(point.name);
  return result;
}

TEST(ShapePoints, AStaticModelHasOnePoint) {
  const auto points = plan_shape_points(model({value("x", DType::kF32, {2, 3})}, {}, {}), {});
  ASSERT_TRUE(points.ok());
  ASSERT_EQ(names(*points), std::vector<std::string>{"static"});
  EXPECT_EQ(points->front().inputs.at("x"), (Shape{2, 3}));
  EXPECT_EQ(points->front().batch, 0);
}

TEST(ShapePoints, BucketsArePowersOfTwoUpToTheMaximum) {
  BuildOptions options;
  options.max_batch = 6;
  const auto points =
      plan_shape_points(model({value("x", DType::kF32, {"n", 3})}, {}, {}), options);
  ASSERT_TRUE(points.ok());
  EXPECT_EQ(names(*points), (std::vector<std::string>{"b1", "b2", "b4", "b6"}));
  EXPECT_EQ(points->back().inputs.at("x"), (Shape{6, 3}));
  EXPECT_EQ(points->back().batch_axes.at("x"), 0);
}

TEST(ShapePoints, ExplicitBatchesReplaceTheBuckets) {
  BuildOptions options;
  options.max_batch = 64;
  options.batches = {7, 3, 7};
  const auto points =
      plan_shape_points(model({value("x", DType::kF32, {"n", 3})}, {}, {}), options);
  ASSERT_TRUE(points.ok());
  EXPECT_EQ(names(*points), (std::vector<std::string>{"b3", "b7"}));
}

TEST(ShapePoints, OneGivenExtentSettlesItsSymbolEverywhere) {
  BuildOptions options;
  options.shape_sets["long"]["ids"] = {-1, 128};
  options.max_batch = 2;
  const auto points = plan_shape_points(two_inputs(), options);
  ASSERT_TRUE(points.ok()) << points.error().message;
  EXPECT_EQ(names(*points), (std::vector<std::string>{"b1/long", "b2/long"}));
  EXPECT_EQ(points->back().inputs.at("mask"), (Shape{2, 128}));
  EXPECT_EQ(points->back().batch_axes.at("mask"), 0);
}

TEST(ShapePoints, TheBatchMayBeAnotherAxis) {
  BuildOptions options;
  options.shape_sets[""]["x"] = {5, -1};
  options.max_batch = 2;
  const auto points =
      plan_shape_points(model({value("x", DType::kF32, {"time", "n"})}, {}, {}), options);
  ASSERT_TRUE(points.ok());
  EXPECT_EQ(points->back().inputs.at("x"), (Shape{5, 2}));
  EXPECT_EQ(points->back().batch_axes.at("x"), 1);
}

TEST(ShapePoints, AnInitializerIsNoInput) {
  auto m = model({value("x", DType::kF32, {2}), value("w", DType::kF32, {"k"})}, {}, {});
  m.graph.initializers.push_back(tensor<float>("w", DType::kF32, {1}, {1}));
  const auto points = plan_shape_points(m, {});
  ASSERT_TRUE(points.ok());
  EXPECT_EQ(points->front().inputs.size(), 1u);
}

TEST(ShapePoints, AMissingExtentNamesTheFlag) {
  const auto points = plan_shape_points(two_inputs(), {});
  ASSERT_FALSE(points.ok());
  EXPECT_EQ(points.error().message,
            "input 'ids' has no extent for 'seq', its axis 1; give it with --shapes 'ids:BxN', a "
            "number for each N (B is the batch)");
}

TEST(ShapePoints, ContradictionsAreRefused) {
  BuildOptions options;
  options.shape_sets[""]["x"] = {4, 5};
  auto declared = value("x", DType::kF32, {"n", 3});
  declared.type_text = "float[n,3]";
  const auto points = plan_shape_points(model({declared}, {}, {}), options);
  ASSERT_FALSE(points.ok());
  EXPECT_EQ(points.error().message,
            "--shapes for input 'x' has 5 at axis 1, the model declares float[n,3]");
  options.shape_sets[""] = {{"y", {1}}};
  const auto unknown = plan_shape_points(model({declared}, {}, {}), options);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "--shapes names 'y', which is no input");
}

TEST(ShapePoints, BatchFlagsNeedABatchDimension) {
  BuildOptions options;
  options.max_batch = 8;
  const auto points = plan_shape_points(model({value("x", DType::kF32, {2, 3})}, {}, {}), options);
  ASSERT_FALSE(points.ok());
  EXPECT_NE(points.error().message.find("--max-batch"), std::string::npos);
}

}  // namespace
}  // namespace kiln::onnx_import
