#include "engine/request/staging.h"

#include <gtest/gtest.h>

#include "tests/engine/plan_fixtures.h"

namespace kiln {
namespace {

TEST(Staging, RepeatsTheLastRow) {
  const std::vector<int> from = {1, 2, 3, 4};
  std::vector<int> to(8, -1);
  pad_rows(from.data(), 2, to.data(), 4, {.blocks = 1, .row_bytes = 8});
  EXPECT_EQ(to, (std::vector<int>{1, 2, 3, 4, 3, 4, 3, 4}));
}

TEST(Staging, PadsEachBlock) {
  const std::vector<int> from = {1, 2, 3};
  std::vector<int> to(6, -1);
  pad_rows(from.data(), 1, to.data(), 2, {.blocks = 3, .row_bytes = 4});
  EXPECT_EQ(to, (std::vector<int>{1, 1, 2, 2, 3, 3}));
}

TEST(Staging, TrimsEachBlock) {
  const std::vector<int> from = {1, 2, 3, 4, 5, 6};
  std::vector<int> to(4, -1);
  trim_rows(from.data(), 3, to.data(), 2, {.blocks = 2, .row_bytes = 4});
  EXPECT_EQ(to, (std::vector<int>{1, 2, 4, 5}));
}

TEST(Staging, LiesBehindTheArena) {
  plan::Plan plan = testing::affine_plan({4});
  plan.points[0].arena_bytes = 193;
  const StagingLayout layout = lay_out_staging(plan, plan.points[0]);
  EXPECT_TRUE(layout.possible);
  EXPECT_EQ(layout.inputs[0].offset, 256u);
  EXPECT_EQ(layout.outputs[0].offset, 320u);
  EXPECT_EQ(layout.end, 384u);
  EXPECT_EQ(layout.inputs[0].rows.blocks, 1u);
  EXPECT_EQ(layout.inputs[0].rows.row_bytes, 16u);
}

TEST(Staging, KeepsRowsOfSeveralElementsTogether) {
  // Three elements a row along the batch axis: [B * 3, 2].
  const auto plan = testing::scale_plan({testing::point_of("b2", 2, {DType::kF32, {6, 2}})}, 0);
  const StagingLayout layout = lay_out_staging(plan, plan.points[0]);
  EXPECT_EQ(layout.inputs[0].rows.row_bytes, 3 * 2 * 4u);
}

TEST(Staging, NeedsWholeBytes) {
  for (int64_t width : {3, 4}) {
    const auto plan =
        testing::scale_plan({testing::point_of("b2", 2, {DType::kI4, {2, width}})}, 0);
    EXPECT_EQ(lay_out_staging(plan, plan.points[0]).possible, width == 4);
  }
}

TEST(Staging, TakesNoMemoryWithoutPadding) {
  plan::Plan plan = testing::affine_plan({4});
  plan.batch_padding = false;
  const StagingLayout layout = lay_out_staging(plan, plan.points[0]);
  EXPECT_FALSE(layout.possible);
  EXPECT_EQ(layout.end, plan.points[0].arena_bytes);
}

}  // namespace
}  // namespace kiln
