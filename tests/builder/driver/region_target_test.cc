#include "builder/driver/region_target.h"

#include <gtest/gtest.h>

#include "builder/tactics/region_work.h"

namespace kiln {
namespace {

using Kind = ir::Region::Kind;

ir::Region region_of(Kind kind, const char* body) {
  return {kind, std::make_shared<ir::Graph>(ir::parse_text(body).value()), {}, ""};
}

// 1 TB/s, and a different rate for each type.
constexpr double kTera = 1e12;
report::PeakRates rates() {
  return {kTera, 10 * kTera, 100 * kTera, 200 * kTera, 400 * kTera, "x"};
}

report::Region measured(const ir::Region& region, double us) {
  report::Region record;
  const RegionWork work = region_work(*region.body);
  record.bytes_read = work.bytes_read;
  record.bytes_written = work.bytes_written;
  record.flops = work.flops;
  record.candidates.resize(1);
  record.candidates[0].median_us = us;
  record.chosen = 0;
  return record;
}

constexpr char kProduct[] = R"(graph {
  input %0 : f32[1000x1000] "a"
  input %1 : f32[1000x1000] "b"
  %2 = matmul{transpose_a=0, transpose_b=0}(%0, %1) : f32[1000x1000] ; "p"
  output %2 "y"
})";

// 2e9 operations and 12 MB.
TEST(DescribeRoofline, TakesTheRateOfTheOperands) {
  const ir::Region region = region_of(Kind::kContraction, kProduct);
  report::Region record = measured(region, 400);
  describe_roofline(region, {}, rates(), record);
  EXPECT_DOUBLE_EQ(record.roofline_share, 0.5);  // 200 us at 10 TFLOPS
  EXPECT_EQ(record.roofline_bound, "compute");
  Lowered rounds;
  rounds.steps.emplace_back(LibraryCall{.tf32 = true});
  describe_roofline(region, rounds, rates(), record);
  EXPECT_DOUBLE_EQ(record.roofline_share, 0.05);  // 20 us at 100 TFLOPS, 12 us for the memory
}

TEST(DescribeRoofline, OfASumIsTheMemorys) {
  const ir::Region region = region_of(Kind::kLoop, R"(graph {
  input %0 : f32[1000x1000] "x"
  %1 = neg(%0) : f32[1000x1000] ; "n"
  output %1 "y"
})");
  report::Region record = measured(region, 10);
  describe_roofline(region, {}, rates(), record);
  EXPECT_DOUBLE_EQ(record.roofline_share, 0.8);  // 8 MB take 8 us
  EXPECT_EQ(record.roofline_bound, "memory");
  report::Region unknown = measured(region, 10);
  describe_roofline(region, {}, {}, unknown);
  EXPECT_EQ(unknown.roofline_share, 0);
}

TEST(DescribeHostSteps, SaysWhy) {
  const ir::Region product = region_of(Kind::kContraction, kProduct);
  report::Region record;
  record.refusals = {{"cublaslt", "has no matmul of i32 to i32"}};
  Lowered lowered;
  lowered.steps.emplace_back(LibraryCall{});
  describe_host_steps(product, lowered, record);
  EXPECT_EQ(record.host_reason, "");
  lowered.steps.emplace_back(HostCall{Operation{"matmul", {}}, {}, {}});
  describe_host_steps(product, lowered, record);
  EXPECT_EQ(record.host_reason, "'matmul' runs on the host: has no matmul of i32 to i32");
}

TEST(DescribeHostSteps, KnowsWhatHasNoFormOnTheGpu) {
  const ir::Region region = region_of(Kind::kOpaque, R"(graph {
  input %0 : f32[2x3x3] "x"
  %1 = det(%0) : f32[2] ; "d"
  output %1 "y"
})");
  report::Region record;
  Lowered lowered;
  lowered.steps.emplace_back(HostCall{Operation{"det", {}}, {}, {}});
  describe_host_steps(region, lowered, record);
  EXPECT_EQ(record.host_reason, "'det' runs on the host: 'det' has no form as loops");
}

TEST(RegionWork, CountsOfATableWhatIsGathered) {
  const ir::Region region = region_of(Kind::kLoop, R"(graph {
  input %0 : f32[1000x8] "table"
  input %1 : i64[3] "rows"
  %2 = gather{axis=0}(%0, %1) : f32[3x8] ; "g"
  output %2 "y"
})");
  EXPECT_EQ(region_work(*region.body).bytes_read, 3 * 8 * 4u + 3 * 8u);
  EXPECT_EQ(region_work(*region.body).bytes_written, 3 * 8 * 4u);
}

}  // namespace
}  // namespace kiln
