#include "builder/tactics/region_work.h"

#include <gtest/gtest.h>

#include "builder/ir/text.h"

namespace kiln {
namespace {

// A loop of so many rounds, with a product of 2 * 4 * 8 * 8 flops and a branch whose longer side
// has two operations of 32 elements in each.
RegionWork work_of_loop(const std::string& rounds) {
  const auto graph = ir::parse_text(R"(graph {
  input %0 : i64[] "rounds"
  input %1 : bool[] "go"
  input %2 : f32[4x8] "x"
  input %3 : f32[8x8] "w"
  %4 = loop{carried=1, trip_count=)" +
                                    rounds + R"(}(%0, %1, %2, %3) : f32[4x8] ; "loop" {
    input %0 : i64[] "i"
    input %1 : bool[] "go"
    input %2 : f32[4x8] "state"
    input %3 : f32[8x8] "w"
    %4 = matmul{transpose_a=0, transpose_b=0}(%2, %3) : f32[4x8] ; "product"
    %5 = if(%1, %4) : f32[4x8] ; "if" {
      input %0 : f32[4x8] "a"
      %1 = exp(%0) : f32[4x8] ; "exp"
      %2 = neg(%1) : f32[4x8] ; "neg"
      output %2 ""
    } {
      input %0 : f32[4x8] "a"
      output %0 ""
    }
    output %1 ""
    output %5 ""
  }
  output %4 "y"
}
)");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? region_work(*graph) : RegionWork();
}

constexpr uint64_t kRoundFlops = 2 * 4 * 8 * 8 + 2 * 32;

TEST(RegionWork, CountsRoundsThatAreKnown) {
  const RegionWork work = work_of_loop("1000");
  EXPECT_EQ(work.flops, 1000 * kRoundFlops);
  EXPECT_EQ(work.steps, 1000 * 3u);
}

TEST(RegionWork, CountsARoundWhereTheirNumberIsNotKnown) {
  const RegionWork work = work_of_loop("-1");
  EXPECT_EQ(work.flops, kRoundFlops);
  EXPECT_EQ(work.steps, 3u);
}

TEST(RegionWork, HasAMostWhereRoundsAreMoreThanCanBeCounted) {
  EXPECT_EQ(work_of_loop("9223372036854775807").flops, UINT64_MAX);
}

// Two tables of 1000 rows of 8, one cast and viewed first; 3 rows are taken of each. The third
// input is gathered from and read whole.
TEST(RegionWork, CountsTheRowsThatAreGathered) {
  const auto graph = ir::parse_text(R"(graph {
  input %0 : f16[1000x8] "table"
  input %1 : f16[8x1000] "other"
  input %2 : f32[100x8] "whole"
  input %3 : i64[3] "rows"
  %4 = cast{saturate=1, to="f32"}(%0) : f32[1000x8] ; "cast"
  %5 = gather{axis=0}(%4, %3) : f32[3x8] ; "rows of table"
  %6 = transpose{perm=[1, 0]}(%1) : f16[1000x8] ; "view"
  %7 = gather{axis=0}(%6, %3) : f16[3x8] ; "rows of other"
  %8 = gather{axis=0}(%2, %3) : f32[3x8] ; "rows of whole"
  %9 = exp(%2) : f32[100x8] ; "exp"
  output %5 "a"
  output %7 "b"
  output %8 "c"
  output %9 "d"
}
)");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const RegionWork work = region_work(*graph);
  EXPECT_EQ(work.bytes_read, 2u * 24 + 2u * 24 + 4u * 800 + 8u * 3);
  EXPECT_EQ(work.bytes_written, 4u * 24 + 2u * 24 + 4u * 24 + 4u * 800);
}

}  // namespace
}  // namespace kiln
