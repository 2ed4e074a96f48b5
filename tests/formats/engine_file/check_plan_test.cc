#include "formats/engine_file/check_plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/engine/plan_fixtures.h"

namespace kiln {
namespace {

using plan::BufferRef;
using plan::Plan;
using Space = BufferRef::Space;

// The steps of the fixture by number.
plan::HostOperation& host(Plan& plan, size_t step) {
  return std::get<plan::HostOperation>(plan.points[0].steps[step].action);
}
plan::Repeat& repeat(Plan& plan) { return std::get<plan::Repeat>(plan.points[0].steps[1].action); }
plan::Branch& branch(Plan& plan) { return std::get<plan::Branch>(plan.points[0].steps[3].action); }
plan::Copy& copy(Plan& plan) { return std::get<plan::Copy>(plan.points[0].steps[6].action); }

struct Case {
  const char* name;
  std::function<void(Plan&)> damage;
  const char* message;  // a part of it
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

class CheckPlan : public ::testing::TestWithParam<Case> {};

TEST_P(CheckPlan, RefusesBrokenPlans) {
  Plan plan = testing::affine_plan({2});
  ASSERT_TRUE(plan::check_plan(plan));
  GetParam().damage(plan);
  const auto checked = plan::check_plan(plan);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kCorruptData);
  EXPECT_NE(checked.error().message.find(GetParam().message), std::string::npos)
      << checked.error().message;
}

const Case kCases[] = {
    {"Rank", [](Plan& p) { p.origin.rank = 1; }, "rank is 1 of 1"},
    {"NoPoints", [](Plan& p) { p.points.clear(); }, "has no shape point"},
    {"SamePointTwice", [](Plan& p) { p.points.push_back(p.points[0]); }, "'b2' is there twice"},
    {"SameInputTwice", [](Plan& p) { p.inputs.push_back(p.inputs[0]); }, "'x' is there twice"},
    {"NamelessOutput", [](Plan& p) { p.outputs[0].name = ""; }, "output has an empty name"},
    {"NamelessPlugin", [](Plan& p) { p.plugins = {{"", "1"}}; }, "plugin has an empty name"},
    {"InputTypes", [](Plan& p) { p.points[0].inputs.clear(); }, "has 0 input types, expected 1"},
    {"BatchAxis", [](Plan& p) { p.inputs[0].batch_axis = 2; }, "batch axis is 2"},
    {"BatchExtent", [](Plan& p) { p.points[0].batch = 3; }, "expected a multiple of 3"},
    {"NegativeBatch", [](Plan& p) { p.points[0].batch = -1; }, "batch is -1"},
    {"NegativeExtent", [](Plan& p) { p.points[0].inputs[0].shape = {2, -4}; }, "negative extent"},
    {"HugeType", [](Plan& p) { p.points[0].inputs[0].shape = {2, int64_t{1} << 59}; },
     "too many elements"},
    {"FixedSize", [](Plan& p) { p.points[0].fixed_inputs = {{0, {}}}; },
     "fixed input 0 has 0 bytes, expected 32"},
    {"FixedNumber", [](Plan& p) { p.points[0].fixed_inputs = {{1, {}}}; }, "out of range"},
    {"Arena", [](Plan& p) { p.points[0].arena_bytes = uint64_t{1} << 60; }, "arena is"},
    {"IoBytes", [](Plan& p) { p.points[0].arena_bytes = (uint64_t{1} << 48) - 8; },
     "arena, inputs and outputs have more than 281474976710656 bytes"},
    {"LowerBound", [](Plan& p) { p.points[0].arena_lower_bound_bytes++; }, "lower bound"},
    {"ConstantOrder", [](Plan& p) { p.constants[1].offset = 0; }, "constant 'three': offset is 0"},
    {"ConstantRange", [](Plan& p) { p.constants[2].bytes = 1 << 20; }, "end after the"},
    {"ConstantOverflow", [](Plan& p) { p.constants[2].bytes = UINT64_MAX; }, "end after the"},
    {"Region", [](Plan& p) { p.points[0].steps[0].region = 9; }, "region is 9"},
    {"Blob", [](Plan& p) { host(p, 0).operation = 7; }, "operation blob number 7"},
    {"OperandSize", [](Plan& p) { host(p, 0).inputs[0].type.shape = {2, 5}; },
     "input 0 has 32 bytes, f32[2x5] needs 40"},
    {"OperandType", [](Plan& p) { host(p, 0).inputs[0].type.dtype = static_cast<DType>(99); },
     "dtype is 99"},
    {"ArenaRange", [](Plan& p) { host(p, 0).outputs[0].buffer.offset = 1 << 20; }, "of its arena"},
    {"ArenaOverflow", [](Plan& p) { host(p, 0).outputs[0].buffer.offset = UINT64_MAX - 3; },
     "of its arena"},
    {"Alignment", [](Plan& p) { host(p, 0).outputs[0].buffer.offset = 2; },
     "offset is 2, expected a multiple of 4"},
    {"InputNumber", [](Plan& p) { host(p, 0).inputs[0].buffer.index = 3; }, "input number is 3"},
    {"InputRange", [](Plan& p) { host(p, 0).inputs[0].buffer.offset = 4; }, "of its input"},
    {"OutputNumber", [](Plan& p) { copy(p).to.index = 1; }, "output number is 1"},
    {"WritesInput", [](Plan& p) { copy(p).to = {Space::kInput, 0, 0, 32}; },
     "to is written but lies in space 'input'"},
    {"WritesWeights", [](Plan& p) { copy(p).to = host(p, 4).inputs[1].buffer; }, "'weights'"},
    {"WeightsGap", [](Plan& p) { host(p, 4).inputs[1].buffer.offset += 4; },
     "are not in one constant"},
    {"Cache", [](Plan& p) { host(p, 0).inputs[0].buffer.space = Space::kCache; }, "is reserved"},
    {"NoBuffer", [](Plan& p) { host(p, 0).inputs[0].buffer.space = Space::kNone; },
     "has no buffer"},
    {"OperandBytes",
     [](Plan& p) {
       p.points[0].arena_bytes = uint64_t{1} << 47;
       const TensorType large{DType::kF32, {int64_t{1} << 45}};
       host(p, 0).inputs.assign(3, {testing::arena(0, uint64_t{1} << 47), large});
     },
     "workspace and operands up to input 2 have more than"},
    {"WorkspaceSpace", [](Plan& p) { host(p, 0).workspace = testing::output(0, 32); },
     "workspace is not in the arena"},
    {"WorkspaceAlignment", [](Plan& p) { host(p, 0).workspace = testing::arena(32, 32); },
     "expected a multiple of 64"},
    {"CopyLengths", [](Plan& p) { copy(p).from.bytes = 16; }, "copies 16 bytes to 32"},
    {"CopyOverlap", [](Plan& p) { copy(p).to = testing::arena(48, 32); }, "onto itself"},
    {"ConditionSize", [](Plan& p) { branch(p).condition = testing::arena(0, 4); },
     "condition has 4 bytes, expected 1"},
    {"BranchSpan", [](Plan& p) { branch(p).else_steps = 3; },
     "step 3: 3 nested steps, expected at most 2"},
    {"RepeatSpan", [](Plan& p) { repeat(p).body_steps = UINT32_MAX; }, "nested steps"},
    {"RepeatCrossesBranch", [](Plan& p) { repeat(p).body_steps = 3; }, "nested steps"},
    {"RepeatForEver", [](Plan& p) { repeat(p).trip_count = {}; }, "without trip count"},
    {"RepeatNothing", [](Plan& p) { repeat(p).body_steps = 0; }, "repeats no step"},
    {"TripCountSize", [](Plan& p) { repeat(p).trip_count.bytes = 4; }, "expected 8"},
    {"IterationSpace", [](Plan& p) { repeat(p).iteration = repeat(p).trip_count; },
     "iteration is written"},
    {"IterationAlignment", [](Plan& p) { repeat(p).iteration = testing::arena(4, 8); },
     "expected a multiple of 8"},
};

INSTANTIATE_TEST_SUITE_P(Damage, CheckPlan, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(CheckPlanNesting, IsBounded) {
  Plan plan = testing::affine_plan({2});
  const BufferRef yes = branch(plan).condition;
  const plan::Step last = plan.points[0].steps[0];
  const auto nested = [&](uint32_t depth) {
    std::vector<plan::Step> steps;
    for (uint32_t i = 0; i < depth; ++i) steps.push_back({0, plan::Branch{yes, depth - i, 0}});
    steps.push_back(last);
    return steps;
  };
  plan.points[0].steps = nested(64);
  EXPECT_TRUE(plan::check_plan(plan));
  plan.points[0].steps = nested(65);
  ASSERT_FALSE(plan::check_plan(plan));
  plan.points[0].steps = nested(1'000'000);
  ASSERT_FALSE(plan::check_plan(plan));
}

TEST(CheckPlanMessage, NamesPointStepAndRegion) {
  Plan plan = testing::affine_plan({2});
  copy(plan).from.bytes = 16;
  EXPECT_EQ(plan::check_plan(plan).error().message,
            "point 'b2': step 6 ('out'): copies 16 bytes to 32");
}

TEST(Overlap, ComparesWithinOneSpaceOnly) {
  using testing::arena;
  EXPECT_TRUE(plan::overlap(arena(0, 8), arena(7, 8)));
  EXPECT_FALSE(plan::overlap(arena(0, 8), arena(8, 8)));
  EXPECT_FALSE(plan::overlap(arena(0, 8), arena(4, 0)));
  EXPECT_FALSE(plan::overlap(arena(0, 8), testing::input(0, 8)));
  EXPECT_FALSE(plan::overlap(testing::input(1, 8), testing::input(0, 8)));
  EXPECT_TRUE(plan::overlap(testing::input(1, 8), testing::input(1, 8)));
}

}  // namespace
}  // namespace kiln
