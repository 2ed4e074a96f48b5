#include "builder/pipeline/pass_driver.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "builder/pipeline/pipeline.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

constexpr char kNegTwice[] = R"(graph {
  input %0 : f32[4] "x"
  %1 = neg(%0) : f32[4] ; "a"
  %2 = neg(%1) : f32[4] ; "b"
  output %2 "y"
})";

ir::Graph parse(const char* text) {
  auto graph = ir::parse_text(text);
  EXPECT_TRUE(graph.ok());
  return std::move(graph).value();
}

// Replaces the output by its producer's input.
Result<bool> drop_last(ir::Graph& graph, PassContext&) {
  const ir::ValueId last = graph.outputs()[0];
  const ir::NodeId node = graph.value(last).producer;
  if (node == ir::kNoNode) return false;
  graph.replace_uses(last, graph.node(node).inputs[0]);
  graph.erase(node);
  return true;
}

Result<bool> drop_last_in_secret(ir::Graph& graph, PassContext& context) {
  KILN_RETURN_IF_ERROR(drop_last(graph, context));
  return false;
}

Result<bool> fail(ir::Graph&, PassContext&) { return Error{ErrorCode::kInternal, "node 'a': no"}; }

constexpr Pass kDrop[] = {{.name = "drop-last", .stage = Pass::Stage::kClean, .run = drop_last}};

TEST(PassDriver, RepeatsCleanPassesUntilNothingChanges) {
  ir::Graph graph = parse(kNegTwice);
  PassContext context;
  ASSERT_TRUE(run_passes(graph, kDrop, context).ok());
  EXPECT_EQ(graph.node_count(), 0u);
  ASSERT_EQ(context.timings.size(), 1u);
  EXPECT_EQ(context.timings[0].changes, 2);
}

TEST(PassDriver, StopsAfterThatManyChanges) {
  ir::Graph graph = parse(kNegTwice);
  PassContext context;
  context.options.stop_after = 1;
  ASSERT_TRUE(run_passes(graph, kDrop, context).ok());
  EXPECT_EQ(graph.node_count(), 1u);
}

TEST(PassDriver, LeavesDisabledPassesOut) {
  ir::Graph graph = parse(kNegTwice);
  PassContext context;
  context.options.disabled = {"drop-last"};
  ASSERT_TRUE(run_passes(graph, kDrop, context).ok());
  EXPECT_EQ(graph.node_count(), 2u);
}

TEST(PassDriver, NamesTheKnownPassesWhenOneIsUnknown) {
  ir::Graph graph = parse(kNegTwice);
  PassContext context;
  context.options.disabled = {"drop-first"};
  const auto result = run_passes(graph, kDrop, context);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message,
            "cannot disable pass 'drop-first': there is no pass of that name; expected one of "
            "drop-last");
}

TEST(PassDriver, RefusesToDisableWhatTheBackendNeeds) {
  ir::Graph graph = parse(kNegTwice);
  PassContext context;
  context.options.disabled = {"form-regions"};
  const auto result = run_passes(graph, default_pipeline(), context);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("it is required"), std::string::npos);
}

TEST(PassDriver, CatchesAPassThatHidesItsChange) {
  ir::Graph graph = parse(kNegTwice);
  PassContext context;
  context.options.check_changed_flag = true;
  const Pass passes[] = {{.name = "sly", .stage = Pass::Stage::kFuse, .run = drop_last_in_secret}};
  const auto result = run_passes(graph, passes, context);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "pass 'sly': changed the graph but reported no change");
}

TEST(PassDriver, PrefixesErrorsWithThePass) {
  ir::Graph graph = parse(kNegTwice);
  PassContext context;
  const Pass passes[] = {{.name = "failing", .stage = Pass::Stage::kFuse, .run = fail}};
  const auto result = run_passes(graph, passes, context);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "pass 'failing': node 'a': no");
}

TEST(PassDriver, DumpsEachChangeWhenAsked) {
  const testing::ScratchFolder folder;
  setenv("KILN_DUMP", "graph", 1);
  setenv("KILN_DUMP_DIR", folder.path().c_str(), 1);
  ir::Graph graph = parse(kNegTwice);
  PassContext context;
  context.options.label = "b8";
  const auto result = run_passes(graph, kDrop, context);
  unsetenv("KILN_DUMP");
  unsetenv("KILN_DUMP_DIR");
  ASSERT_TRUE(result.ok()) << result.error().message;
  for (const char* name : {"000-imported", "001-drop-last", "002-drop-last"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / "b8" / (std::string(name) + ".graph"))) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "b8" / "003-drop-last.graph"));
}

TEST(PassDriver, NamesTheWordsOfDumpsWhenOneIsUnknown) {
  setenv("KILN_DUMP", "graph,tactics", 1);
  ir::Graph graph = parse(kNegTwice);
  PassContext context;
  const auto result = run_passes(graph, kDrop, context);
  const auto checked = check_pass_options(kDrop, context.options);
  unsetenv("KILN_DUMP");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "KILN_DUMP: found 'tactics', expected graph");
  EXPECT_FALSE(checked.ok());
  EXPECT_EQ(graph.node_count(), 2u);
}

}  // namespace
}  // namespace kiln
