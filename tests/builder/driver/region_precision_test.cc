#include "builder/driver/region_precision.h"

#include <gtest/gtest.h>

#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"

namespace kiln {
namespace {

// A product, then a normalisation that is a region of its own.
constexpr char kModel[] = R"(graph {
  input %0 : f32[4x2] "x"
  const %1 : f32[2x2] "w" = 0.5, 0.25, -0.75, 1
  %2 = matmul{transpose_a=0, transpose_b=0}(%0, %1) : f32[4x2] ; "product"
  %3 = reduce{axes=[1], fn="sum", keep_dims=1}(%2) : f32[4x1] ; "sum"
  output %3 "y"
})";

// The regions' records by kind, when cuBLASLt's call for the product rounds to TF32 or not.
std::map<std::string, report::Region> describe(Precision precision, bool rounds, bool on_gpu) {
  ir::Graph graph = ir::parse_text(kModel).value();
  PassContext context;
  context.options.precision = precision;
  EXPECT_TRUE(run_passes(graph, default_pipeline(), context).ok());
  std::map<std::string, report::Region> records;
  for (ir::NodeId id : graph.topological_order()) {
    const auto& region = std::get<ir::Region>(graph.node(id).op);
    ScheduledRegion scheduled{id, "", false, {}};
    LibraryCall call;
    call.tf32 = rounds && region.kind == ir::Region::Kind::kContraction;
    scheduled.lowered.steps.emplace_back(call);
    describe_precision(graph, scheduled, {precision, on_gpu, context.precision},
                       records[std::string(ir::to_string(region.kind))]);
  }
  EXPECT_TRUE(records.contains("contraction") && records.contains("loop"));
  return records;
}

TEST(DescribePrecision, SaysWhichProductsRoundToTf32) {
  auto records = describe(Precision::kTf32, true, true);
  EXPECT_EQ(records["contraction"].precision_asked, "tf32");
  EXPECT_EQ(records["contraction"].precision_realised, "tf32");
  EXPECT_EQ(records["contraction"].precision_reason, "");
  EXPECT_EQ(records["loop"].precision_asked, "f32");
  EXPECT_EQ(records["loop"].precision_realised, "f32");
}

TEST(DescribePrecision, SaysWhyAProductStaysF32) {
  auto records = describe(Precision::kTf32, false, true);
  EXPECT_EQ(records["contraction"].precision_asked, "tf32");
  EXPECT_EQ(records["contraction"].precision_realised, "f32");
  EXPECT_EQ(records["contraction"].precision_reason, "the fastest tactic computes in f32");
  records = describe(Precision::kTf32, false, false);
  EXPECT_EQ(records["contraction"].precision_reason, "target host computes in f32");
}

TEST(DescribePrecision, KnowsNoTf32WhereItWasNotAskedFor) {
  auto records = describe(Precision::kFp32, false, true);
  EXPECT_EQ(records["contraction"].precision_asked, "f32");
  records = describe(Precision::kFp16, false, true);
  EXPECT_EQ(records["contraction"].precision_asked, "f16");
}

}  // namespace
}  // namespace kiln
