// Every near miss names both nodes and the reason.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"

namespace kiln {
namespace {

// The near misses of one pass on the graph of a golden case.
std::vector<report::NearMiss> misses_of(const std::string& pass_name, const std::string& golden) {
  std::ostringstream text;
  text << std::ifstream("tests/builder/fuse/" + pass_name + "/" + golden + ".graph").rdbuf();
  const std::string whole = text.str();
  const size_t start = whole.find("graph {");
  auto graph = ir::parse_text(whole.substr(start, whole.find("---\n") - start));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  PassContext context;
  for (const Pass& pass : default_pipeline()) {
    if (pass.name != pass_name) continue;
    const auto run = run_passes(*graph, {&pass, 1}, context);
    EXPECT_TRUE(run.ok()) << run.error().message;
  }
  return context.near_misses;
}

TEST(NearMisses, AttentionSaysWhatStandsBetween) {
  const auto misses = misses_of("fuse-attention", "activation_between_stays");
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].producer, "softmax");
  EXPECT_EQ(misses[0].consumer, "out");
  EXPECT_EQ(misses[0].rule, "fuse-attention");
  EXPECT_EQ(misses[0].reason, "node 'tanh' stands between MatMul and softmax");
}

TEST(NearMisses, AttentionSaysWhoElseReads) {
  const auto misses = misses_of("fuse-attention", "read_probabilities_stay");
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].reason, "the probabilities are also read elsewhere");
}

TEST(NearMisses, EpiloguesSayWhatBlocks) {
  const auto misses = misses_of("fuse-contraction-epilogues", "two_readers_stay");
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].producer, "mm");
  EXPECT_EQ(misses[0].consumer, "tanh");
  EXPECT_EQ(misses[0].reason, "it and other readers of the product leave more than one result");
}

TEST(NearMisses, LoopsCarryTheLoweringsReason) {
  const auto misses = misses_of("fuse-loops", "reductions_over_other_axes_stay");
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].producer, "rows");
  EXPECT_EQ(misses[0].consumer, "columns");
  EXPECT_FALSE(misses[0].reason.empty());
}

}  // namespace
}  // namespace kiln
