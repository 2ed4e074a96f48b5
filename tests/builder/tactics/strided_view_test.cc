#include "builder/tactics/strided_view.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

// An input and the views behind it, one after the other.
class Chain {
 public:
  explicit Chain(Shape shape) : last_(graph_.add_input("x", {DType::kF16, std::move(shape)})) {}

  Chain& then(ir::Op op) {
    const auto node = graph_.add_node("view", {}, std::move(op), {last_});
    EXPECT_TRUE(node.ok()) << node.error().message;
    last_ = graph_.result(*node);
    return *this;
  }
  Result<StridedView> of_input() {
    std::vector<ir::NodeId> passed;
    return view_of_input(graph_, last_, passed);
  }
  Result<StridedView> repeated() {
    std::vector<ir::NodeId> passed;
    return repeated_view_of_input(graph_, last_, passed);
  }
  Result<StridedView> in_output() {
    std::vector<ir::NodeId> passed;
    graph_.mark_output(last_);
    return view_in_output(graph_, graph_.inputs()[0], passed);
  }

 private:
  ir::Graph graph_;
  ir::ValueId last_;
};

ir::Slice slice_of(const Shape& starts, const Shape& sizes) {
  return {starts, sizes, Shape(sizes.size(), 1)};
}

TEST(StridedView, ReshapesSplitAndJoin) {
  const auto rows_of_18 = slice_of({0, 0}, {2, 6});
  EXPECT_EQ(Chain({2, 6}).then(ir::Reshape{{2, 2, 3}}).of_input()->strides, (Shape{6, 3, 1}));
  EXPECT_EQ(Chain({2, 18}).then(rows_of_18).then(ir::Reshape{{2, 2, 3}}).of_input()->strides,
            (Shape{18, 3, 1}));
  EXPECT_EQ(Chain({2, 18})
                .then(rows_of_18)
                .then(ir::Reshape{{2, 2, 3}})
                .then(ir::Reshape{{2, 6}})
                .of_input()
                ->strides,
            (Shape{18, 1}));
  EXPECT_EQ(Chain({2, 3, 2}).then(ir::Reshape{{3, 4}}).of_input()->strides, (Shape{4, 1}));
  // Extents of 1 come and go.
  EXPECT_EQ(Chain({2, 1, 3}).then(ir::Reshape{{6}}).of_input()->strides, (Shape{1}));
  EXPECT_EQ(Chain({6}).then(ir::Reshape{{1, 6, 1}}).of_input()->dims, (Shape{1, 6, 1}));
}

TEST(StridedView, WhatRepeatsHasExtentOneOrBeginsAnew) {
  const auto rows = [] { return Chain({1, 4, 3}).then(ir::Broadcast{{5, 4, 3}}).repeated(); };
  EXPECT_EQ(rows()->dims, (Shape{1, 4, 3}));
  // Five times four rows: row 7 is row 3 again.
  Chain anew({1, 4, 1, 3});
  anew.then(ir::Broadcast{{5, 4, 1, 3}}).then(ir::Reshape{{20, 1, 3}});
  const auto view = anew.repeated();
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(view->dims, (Shape{4, 1, 3}));
  EXPECT_EQ(view->strides[0], 3);
  EXPECT_FALSE(anew.of_input().ok());
  // Each row five times, and a repetition inside of another axis, are neither.
  EXPECT_FALSE(
      Chain({4, 1, 3}).then(ir::Broadcast{{4, 5, 3}}).then(ir::Reshape{{20, 3}}).repeated().ok());
  EXPECT_FALSE(
      Chain({2, 1, 4}).then(ir::Broadcast{{2, 5, 4}}).then(ir::Reshape{{2, 20}}).repeated().ok());
}

TEST(StridedView, WhatRepeatsMayBeWidened) {
  Chain wide({1, 4, 3});
  wide.then(ir::Cast{DType::kF32}).then(ir::Broadcast{{5, 4, 3}});
  ASSERT_TRUE(wide.repeated().ok()) << wide.repeated().error().message;
  EXPECT_EQ(wide.repeated()->dims, (Shape{1, 4, 3}));
  EXPECT_FALSE(wide.of_input().ok());
  EXPECT_FALSE(Chain({4, 3}).then(ir::Cast{DType::kF64}).repeated().ok());
  EXPECT_FALSE(Chain({4, 3}).then(ir::Cast{DType::kI32}).repeated().ok());
}

TEST(StridedView, AnAxisOfSeveralStridesIsRefused) {
  // Rows of 6 with gaps between them are no line of 12.
  EXPECT_FALSE(
      Chain({2, 18}).then(slice_of({0, 0}, {2, 6})).then(ir::Reshape{{12}}).of_input().ok());
  EXPECT_FALSE(Chain({3, 2}).then(ir::Transpose{{1, 0}}).then(ir::Reshape{{6}}).of_input().ok());
  EXPECT_FALSE(Chain({6}).then(ir::Reshape{{3, 2}}).then(ir::Transpose{{1, 0}}).in_output().ok());
  // Three times two columns of a turned matrix cannot be split in twos of three.
  EXPECT_FALSE(Chain({2, 3}).then(ir::Transpose{{1, 0}}).then(ir::Reshape{{2, 3}}).of_input().ok());
  EXPECT_FALSE(Chain({0, 2}).then(ir::Reshape{{2, 0}}).of_input().ok());
}

// [tokens, batch, q k v, heads * depth], with batch and heads joined before tokens pass them: the
// way of torch's multi-head attention.
TEST(StridedView, BatchAndHeadsMayBeJoinedOnTheWay) {
  Chain chain({5, 2, 24});
  const auto key = chain.then(ir::Reshape{{5, 2, 3, 8}})
                       .then(ir::Transpose{{2, 0, 1, 3}})
                       .then(slice_of({1, 0, 0, 0}, {1, 5, 2, 8}))
                       .then(ir::Reshape{{5, 8, 2}})
                       .then(ir::Transpose{{1, 0, 2}})
                       .then(ir::Reshape{{2, 4, 5, 2}})
                       .of_input();
  ASSERT_TRUE(key.ok()) << key.error().message;
  EXPECT_EQ(key->offset, 8);
  EXPECT_EQ(key->dims, (Shape{2, 4, 5, 2}));
  EXPECT_EQ(key->strides, (Shape{24, 2, 48, 1}));
  const auto result = Chain({2, 4, 5, 2})
                          .then(ir::Reshape{{8, 5, 2}})
                          .then(ir::Transpose{{1, 0, 2}})
                          .then(ir::Reshape{{10, 8}})
                          .in_output();
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->dims, (Shape{2, 4, 5, 2}));
  EXPECT_EQ(result->strides, (Shape{8, 2, 16, 1}));
}

// A slice of such an axis is all of it or refused.
TEST(StridedView, SlicesOfJoinedAxes) {
  Chain chain({3, 2});
  chain.then(ir::Transpose{{1, 0}}).then(ir::Reshape{{1, 6}});
  Chain whole = chain, part = chain;
  EXPECT_TRUE(whole.then(slice_of({0, 0}, {1, 6})).then(ir::Reshape{{2, 3}}).of_input().ok());
  EXPECT_FALSE(part.then(slice_of({0, 1}, {1, 2})).of_input().ok());
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
