#include "engine/steps/call_rules.h"

#include <gtest/gtest.h>

#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

using testing::arena;

plan::Operand floats(uint64_t offset) { return {arena(offset, 16), {DType::kF32, {4}}}; }

std::string message_of(const Result<>& result) { return result ? "" : result.error().message; }

TEST(CallRules, OutputsOverlapNothing) {
  const auto never = [](size_t) { return false; };
  EXPECT_EQ(message_of(check_overlaps({floats(0)}, {floats(16)}, arena(64, 64), never)), "");
  EXPECT_EQ(message_of(check_overlaps({floats(0)}, {floats(12)}, {}, never)),
            "output 0 overlaps input 0");
  EXPECT_EQ(message_of(check_overlaps({}, {floats(0), floats(4)}, {}, never)),
            "output 1 overlaps output 0");
  EXPECT_EQ(message_of(check_overlaps({}, {floats(0)}, arena(8, 8), never)),
            "output 0 overlaps the workspace");
  EXPECT_EQ(message_of(check_overlaps({floats(0)}, {}, arena(8, 8), never)),
            "input 0 overlaps the workspace");
}

TEST(CallRules, InPlaceIsTheWholeOfAnInput) {
  const auto second = [](size_t input) { return input == 1; };
  EXPECT_EQ(message_of(check_overlaps({floats(0), floats(16)}, {floats(16)}, {}, second)), "");
  EXPECT_EQ(message_of(check_overlaps({floats(0), floats(16)}, {floats(0)}, {}, second)),
            "output 0 overlaps input 0");
  EXPECT_EQ(message_of(check_overlaps({floats(0), floats(16)}, {floats(20)}, {}, second)),
            "output 0 overlaps input 1");
  EXPECT_EQ(
      message_of(check_overlaps({floats(0), floats(16)}, {floats(64), floats(16)}, {}, second)),
      "output 1 overlaps input 1");
}

TEST(CallRules, WorkspaceIsLargeEnough) {
  EXPECT_EQ(message_of(check_workspace(arena(0, 64), 64)), "");
  EXPECT_EQ(message_of(check_workspace({}, 64)), "workspace has 0 bytes, the kernel needs 64");
}

plan::Plan workspace_plan(uint64_t bytes) {
  plan::Plan plan = testing::scale_plan({testing::point_of("p", 0, {DType::kF32, {4}})}, -1);
  plan.points[0].arena_bytes = 192;
  auto& step = std::get<plan::HostOperation>(plan.points[0].steps[0].action);
  step.operation = testing::PlanParts(plan).operation(Operation{"needs_workspace", {}});
  step.workspace = arena(64, bytes);
  return plan;
}

TEST(CallRules, HoldAtLoad) {
  EXPECT_TRUE(testing::load_plan(workspace_plan(100)));
  const auto engine = testing::load_plan(workspace_plan(99));
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("workspace has 99 bytes, the kernel needs 100"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln
