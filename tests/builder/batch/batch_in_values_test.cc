#include "builder/batch/batch_in_values.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

ir::Graph graph_of(int64_t rows, const std::string& nodes) {
  std::string text = "graph {\n  input %0 : f32[Nx6] \"x\"\n" + nodes + "}\n";
  for (size_t at = text.find('N'); at != std::string::npos; at = text.find('N', at)) {
    text.replace(at, 1, std::to_string(rows));
  }
  auto graph = ir::parse_text(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? *std::move(graph) : ir::Graph();
}

// Of a model at 4 rows and at 1, N being the rows in its text.
std::string found(const std::string& nodes, std::vector<int> output_axes) {
  const ir::Graph four = graph_of(4, nodes), one = graph_of(1, nodes);
  return batch_in_values(four, one, output_axes).value_or("");
}

TEST(BatchInValues, FindsTheNodeThatComputesWithTheSize) {
  EXPECT_EQ(found(R"(
  const %1 : f32[1] "n" = N
  %2 = div(%0, %1) : f32[Nx6] ; "mean"
  output %2 "y"
)",
                  {0}),
            "node 'mean' computes with the size of the batch");
}

TEST(BatchInValues, FindsOutputsThatGrowWithoutRows) {
  EXPECT_EQ(found(R"(
  %1 = neg(%0) : f32[Nx6] ; "r"
  const %2 : f32[Nx6] "ones" = splat 1
  output %1 "y"
  output %2 "mask"
)",
                  {0, -1}),
            "output 'mask' depends on the size of the batch, not on its rows");
}

TEST(BatchInValues, FindsTheShapeAsAnOutput) {
  EXPECT_EQ(found(R"(
  %1 = neg(%0) : f32[Nx6] ; "r"
  const %2 : i64[2] "shape" = N, 6
  output %1 "y"
  output %2 "s"
)",
                  {0, -1}),
            "output 's' depends on the size of the batch, not on its rows");
}

TEST(BatchInValues, LeavesOtherConstantsAlone) {
  EXPECT_EQ(found(R"(
  const %1 : f32[1] "two" = 2
  const %2 : i64[1] "unused size" = N
  const %3 : f32[Nx1] "a scale for each row" = splat 3
  %4 = mul(%0, %1) : f32[Nx6] ; "m"
  %5 = mul(%4, %3) : f32[Nx6] ; "s"
  output %5 "y"
  output %1 "two"
)",
                  {0, -1}),
            "");
}

}  // namespace
}  // namespace kiln
