#include "builder/batch/row_independence.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

// Input x is [4, 6] with its 4 rows along axis 0.
RowIndependence analyze(const std::string& nodes) {
  const auto graph = ir::parse_text("graph {\n  input %0 : f32[4x6] \"x\"\n" + nodes + "}\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  ShapePoint point;
  point.batch = 4;
  point.batch_axes["x"] = 0;
  return graph.ok() ? analyze_rows(*graph, point) : RowIndependence{};
}

TEST(RowIndependence, FollowsReshapesAndTransposes) {
  const auto rows = analyze(R"(
  %1 = reshape{shape=[4, 2, 3]}(%0) : f32[4x2x3] ; "a"
  %2 = transpose{perm=[1, 0, 2]}(%1) : f32[2x4x3] ; "b"
  %3 = reduce{axes=[2], fn="sum", keep_dims=0}(%2) : f32[2x4] ; "c"
  output %3 "y"
)");
  EXPECT_TRUE(rows.independent) << rows.reason;
  EXPECT_EQ(rows.output_axes, std::vector<int>{1});
}

TEST(RowIndependence, CumulationStaysInARowUnlessItRunsAlongThem) {
  for (const char* operation : {"cum_sum", "cum_prod"}) {
    const auto along = [&](const char* axis) {
      return analyze(std::string("  %1 = ") + operation + "{axis=" + axis +
                     ", exclusive=0, reverse=0}(%0) : f32[4x6] ; \"c\"\n  output %1 \"y\"\n");
    };
    EXPECT_TRUE(along("1").independent) << operation << ": " << along("1").reason;
    EXPECT_FALSE(along("0").independent) << operation;
  }
}

TEST(RowIndependence, FollowsRowsMergedWithTokens) {
  const auto rows = analyze(R"(
  const %1 : f32[3x5] "w" = splat 1
  %2 = reshape{shape=[8, 3]}(%0) : f32[8x3] ; "flat"
  %3 = matmul{transpose_a=0, transpose_b=0}(%2, %1) : f32[8x5] ; "mm"
  %4 = reshape{shape=[4, 10]}(%3) : f32[4x10] ; "back"
  output %4 "y"
  output %1 "w"
)");
  EXPECT_TRUE(rows.independent) << rows.reason;
  EXPECT_EQ(rows.output_axes, (std::vector<int>{0, -1}));
}

TEST(RowIndependence, FollowsRowsBehindTokens) {
  const auto rows = analyze(R"(
  %1 = reshape{shape=[4, 2, 3]}(%0) : f32[4x2x3] ; "a"
  %2 = transpose{perm=[1, 0, 2]}(%1) : f32[2x4x3] ; "b"
  %3 = reshape{shape=[8, 3]}(%2) : f32[8x3] ; "tokens first"
  %4 = exp(%3) : f32[8x3] ; "e"
  %5 = reshape{shape=[2, 4, 3]}(%4) : f32[2x4x3] ; "apart"
  output %5 "y"
)");
  EXPECT_TRUE(rows.independent) << rows.reason;
  EXPECT_EQ(rows.output_axes, std::vector<int>{1});
}

TEST(RowIndependence, RefusesAnOutputThatScattersRows) {
  EXPECT_FALSE(analyze(R"(
  %1 = reshape{shape=[4, 2, 3]}(%0) : f32[4x2x3] ; "a"
  %2 = transpose{perm=[1, 0, 2]}(%1) : f32[2x4x3] ; "b"
  %3 = reshape{shape=[8, 3]}(%2) : f32[8x3] ; "tokens first"
  output %3 "y"
)")
                   .independent);
}

TEST(RowIndependence, FollowsConstantIndicesIntoFlattenedRows) {
  const std::string head = R"(
  const %1 : i64[4x2] "i" = )";
  const std::string tail = R"(
  %2 = reshape{shape=[24]}(%0) : f32[24] ; "flat"
  %3 = gather{axis=0}(%2, %1) : f32[4x2] ; "g"
  output %3 "y"
)";
  EXPECT_TRUE(analyze(head + "5, 1, 11, 7, 17, 13, 23, 19" + tail).independent);
  EXPECT_FALSE(analyze(head + "5, 1, 11, 7, 17, 13, 23, 3" + tail).independent);
  EXPECT_FALSE(analyze(head + "5, 1, 11, 7, 17, 13, 22, 19" + tail).independent);
}

TEST(RowIndependence, FollowsIndexTuplesThatTakeTheirOwnRow) {
  const std::string head = R"(
  const %1 : i64[4x2x2] "i" = )";
  const std::string tail = R"(
  %2 = gather_nd{batch_dims=0}(%0, %1) : f32[4x2] ; "g"
  output %2 "y"
)";
  EXPECT_TRUE(
      analyze(head + "0, 5, 0, 1, 1, 5, 1, 1, 2, 5, 2, 1, -1, 5, -1, 1" + tail).independent);
  EXPECT_FALSE(analyze(head + "0, 5, 0, 1, 1, 5, 1, 1, 2, 1, 2, 5, 3, 5, 3, 1" + tail).independent);
  EXPECT_FALSE(analyze(head + "0, 5, 0, 1, 1, 5, 1, 1, 3, 5, 3, 1, 2, 5, 2, 1" + tail).independent);
}

TEST(RowIndependence, SeesAReductionOverRows) {
  const auto rows = analyze(R"(
  %1 = reduce{axes=[0], fn="sum", keep_dims=1}(%0) : f32[1x6] ; "mean over batch"
  output %1 "y"
)");
  EXPECT_FALSE(rows.independent);
  EXPECT_EQ(rows.reason, "node 'mean over batch' may mix rows of the batch");
}

TEST(RowIndependence, SeesRowsThatAReshapeInterleaves) {
  EXPECT_FALSE(analyze(R"(
  %1 = transpose{perm=[1, 0]}(%0) : f32[6x4] ; "t"
  %2 = reshape{shape=[4, 6]}(%1) : f32[4x6] ; "r"
  output %2 "y"
)")
                   .independent);
}

TEST(RowIndependence, SeesAConstantThatDiffersBetweenRows) {
  EXPECT_FALSE(analyze(R"(
  const %1 : f32[4x1] "c" = 1, 2, 3, 4
  %2 = add(%0, %1) : f32[4x6] ; "a"
  output %2 "y"
)")
                   .independent);
  EXPECT_TRUE(analyze(R"(
  const %1 : f32[4x1] "c" = splat 2
  %2 = add(%0, %1) : f32[4x6] ; "a"
  output %2 "y"
)")
                  .independent);
}

TEST(RowIndependence, SeesRowsThatMeetInAProduct) {
  EXPECT_FALSE(analyze(R"(
  %1 = matmul{transpose_a=0, transpose_b=1}(%0, %0) : f32[4x4] ; "gram"
  output %1 "y"
)")
                   .independent);
}

TEST(RowIndependence, SeesACutAlongTheBatch) {
  EXPECT_FALSE(analyze(R"(
  %1 = slice{sizes=[2, 6], starts=[0, 0], steps=[1, 1]}(%0) : f32[2x6] ; "cut"
  output %1 "y"
)")
                   .independent);
}

}  // namespace
}  // namespace kiln
