#include "engine/steps/control_flow.h"

#include <gtest/gtest.h>

#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

using testing::arena;
using Calls = std::vector<std::pair<size_t, size_t>>;

struct Flow {
  alignas(64) std::byte memory[64] = {};
  Spaces spaces{.arena = memory};
  Calls calls;
  std::vector<int64_t> rounds;
  RunSpan record = [this](size_t first, size_t count) -> Result<> {
    calls.emplace_back(first, count);
    rounds.push_back(number_at(16));
    return Ok();
  };

  int64_t number_at(size_t offset) const {
    int64_t value = 0;
    std::memcpy(&value, memory + offset, sizeof(value));
    return value;
  }
  void set_number(size_t offset, int64_t value) { std::memcpy(memory + offset, &value, 8); }
};

TEST(Branch, TakesOneSide) {
  Flow flow;
  const plan::Branch branch{arena(0, 1), 2, 3};
  ASSERT_TRUE(run_step(branch, 10, flow.spaces, flow.record));
  flow.memory[0] = std::byte{255};  // any byte but 0 is true
  ASSERT_TRUE(run_step(branch, 10, flow.spaces, flow.record));
  EXPECT_EQ(flow.calls, (Calls{{12, 3}, {10, 2}}));
}

TEST(Repeat, CountsRounds) {
  Flow flow;
  flow.set_number(8, 3);
  ASSERT_TRUE(
      run_step(plan::Repeat{arena(8, 8), {}, arena(16, 8), 2}, 5, flow.spaces, flow.record));
  EXPECT_EQ(flow.calls, (Calls{{5, 2}, {5, 2}, {5, 2}}));
  EXPECT_EQ(flow.rounds, (std::vector<int64_t>{0, 1, 2}));
}

TEST(Repeat, RunsNoRoundForCountsBelowOne) {
  Flow flow;
  for (int64_t count : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    flow.set_number(8, count);
    ASSERT_TRUE(run_step(plan::Repeat{arena(8, 8), {}, {}, 1}, 0, flow.spaces, flow.record));
  }
  EXPECT_TRUE(flow.calls.empty());
}

TEST(Repeat, StopsWhenTheConditionIsCleared) {
  Flow flow;
  flow.memory[0] = std::byte{1};
  const RunSpan twice = [&](size_t first, size_t count) -> Result<> {
    flow.calls.emplace_back(first, count);
    if (flow.calls.size() == 2) flow.memory[0] = std::byte{0};
    return Ok();
  };
  ASSERT_TRUE(run_step(plan::Repeat{{}, arena(0, 1), {}, 1}, 0, flow.spaces, twice));
  EXPECT_EQ(flow.calls.size(), 2u);
}

TEST(Repeat, HandsErrorsOut) {
  Flow flow;
  flow.set_number(8, 3);
  const RunSpan fail = [&](size_t, size_t) -> Result<> {
    flow.calls.emplace_back();
    return Error{ErrorCode::kInvalidArgument, "no"};
  };
  EXPECT_FALSE(run_step(plan::Repeat{arena(8, 8), {}, {}, 1}, 0, flow.spaces, fail));
  EXPECT_EQ(flow.calls.size(), 1u);
}

}  // namespace
}  // namespace kiln
