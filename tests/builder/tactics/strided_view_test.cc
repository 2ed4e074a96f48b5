#include "builder/tactics/strided_view.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(ReshapedStrides, SplitAndJoinDenseRunsOnly) {
  EXPECT_EQ(reshaped_strides({2, 6}, {6, 1}, {2, 2, 3}), (Shape{6, 3, 1}));
  EXPECT_EQ(reshaped_strides({2, 6}, {18, 1}, {2, 2, 3}), (Shape{18, 3, 1}));
  EXPECT_EQ(reshaped_strides({2, 2, 3}, {18, 3, 1}, {2, 6}), (Shape{18, 1}));
  EXPECT_EQ(reshaped_strides({4, 3}, {6, 2}, {12}), (Shape{2}));
  // Rows of 6 with gaps between them are no line of 12.
  EXPECT_EQ(reshaped_strides({2, 6}, {18, 1}, {12}), std::nullopt);
  EXPECT_EQ(reshaped_strides({3, 2}, {1, 3}, {6}), std::nullopt);
  // Extents of 1 come and go.
  EXPECT_EQ(reshaped_strides({2, 1, 3}, {3, 99, 1}, {6})->front(), 1);
  EXPECT_EQ(reshaped_strides({6}, {2}, {1, 6, 1}).value()[1], 2);
  EXPECT_EQ(reshaped_strides({2, 3}, {3, 1}, {5}), std::nullopt);
}

TEST(StridedView, SlicesStartBehindTheFirstElement) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_input("x", {DType::kF16, {2, 3, 8}});
  const auto slice =
      graph.add_node("slice", {}, ir::Slice{{0, 1, 4}, {2, 2, 4}, {1, 1, 1}}, {x}).value();
  const auto turn =
      graph.add_node("turn", {}, ir::Transpose{{0, 2, 1}}, {graph.result(slice)}).value();
  graph.mark_output(graph.result(turn));
  std::vector<ir::NodeId> passed;
  const auto view = view_of_input(graph, graph.result(turn), passed);
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(view->source, x);
  EXPECT_EQ(view->offset, 12);
  EXPECT_EQ(view->dims, (Shape{2, 4, 2}));
  EXPECT_EQ(view->strides, (Shape{24, 1, 8}));
  EXPECT_EQ(passed.size(), 2U);
}

}  // namespace
}  // namespace kiln
