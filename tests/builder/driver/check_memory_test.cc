#include "builder/driver/check_memory.h"

#include <gtest/gtest.h>

#include "builder/ir/text.h"

namespace kiln {
namespace {

constexpr uint64_t kGiga = 1'000'000'000;

ir::Graph graph_of(const char* text) {
  auto graph = ir::parse_text(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? std::move(*graph) : ir::Graph();
}

// 4 GB in; 4 GB out, once from the engine and once from the reference.
constexpr char kWide[] = R"(graph {
  input %0 : f32[1000000x1000] "x"
  %1 = exp(%0) : f32[1000000x1000] ; "exp"
  output %1 "y"
}
)";

TEST(CheckMemory, CountsARequestAndBothAnswers) {
  EXPECT_EQ(least_memory_bytes(graph_of(kWide)), 12 * kGiga);
}

TEST(CheckMemory, CountsTheLargestOperationButNoConstants) {
  const ir::Graph graph = graph_of(R"(graph {
  input %0 : f32[1000x1] "x"
  const %1 : f32[] "one" = 1
  %2 = broadcast{shape=[1000, 1000000]}(%0) : f32[1000x1000000] ; "wide"
  %3 = add(%2, %1) : f32[1000x1000000] ; "add"
  %4 = reduce{axes=[0, 1], fn="sum", keep_dims=0}(%3) : f32[] ; "sum"
  output %4 "y"
}
)");
  EXPECT_EQ(least_memory_bytes(graph), 8 * kGiga);
}

TEST(CheckMemory, RefusesMoreThanThereIs) {
  const ir::Graph graph = graph_of(kWide);
  EXPECT_TRUE(check_memory(graph, "B4", 12 * kGiga).ok());
  const auto refused = check_memory(graph, "B4", 12 * kGiga - 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(refused.error().message,
            "shape point 'B4' takes at least 12.0 GB of memory to build, found 12.0 GB available; "
            "build for fewer rows or smaller shapes");
}

TEST(CheckMemory, ThisMachineHasSome) { EXPECT_GT(available_memory_bytes(), 1'000'000u); }

}  // namespace
}  // namespace kiln
