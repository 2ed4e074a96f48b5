#include "builder/memory/plan_memory.h"

#include <gtest/gtest.h>

#include <random>

namespace kiln {
namespace {

// No two buffers that are alive together may share a byte, unless one took over the other's.
void expect_sound(std::span<const Lifetime> lives, const Placement& placement) {
  ASSERT_EQ(placement.offsets.size(), lives.size());
  for (size_t a = 0; a < lives.size(); ++a) {
    EXPECT_EQ(placement.offsets[a] % kArenaAlignment, 0u);
    EXPECT_LE(placement.offsets[a] + lives[a].bytes, placement.arena_bytes);
    for (size_t b = 0; b < a; ++b) {
      const bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
      const bool apart = placement.offsets[a] + lives[a].bytes <= placement.offsets[b] ||
                         placement.offsets[b] + lives[b].bytes <= placement.offsets[a];
      if (lives[a].in_place_of == b) {
        EXPECT_EQ(placement.offsets[a], placement.offsets[b]);
      } else if (together && lives[a].bytes && lives[b].bytes) {
        EXPECT_TRUE(apart) << a << " and " << b;
      }
    }
  }
  EXPECT_GE(placement.arena_bytes, placement.lower_bound_bytes);
}

TEST(PlanMemory, NothingNeedsNothing) {
  const Placement placement = plan_memory({});
  EXPECT_EQ(placement.arena_bytes, 0u);
  EXPECT_EQ(placement.lower_bound_bytes, 0u);
}

TEST(PlanMemory, AChainTakesTwoBuffers) {
  std::vector<Lifetime> lives;
  for (int64_t i = 0; i < 10; ++i) lives.push_back({1024, i, i + 1, {}});
  const Placement placement = plan_memory(lives);
  expect_sound(lives, placement);
  EXPECT_EQ(placement.arena_bytes, 2048u);
  EXPECT_EQ(placement.lower_bound_bytes, 2048u);
}

TEST(PlanMemory, InPlaceTakesOne) {
  std::vector<Lifetime> lives = {{1024, 0, 1, {}}};
  for (size_t i = 1; i < 10; ++i) {
    const auto step = static_cast<int64_t>(i);
    lives.push_back({1024, step, step + 1, i - 1});
  }
  const Placement placement = plan_memory(lives);
  expect_sound(lives, placement);
  EXPECT_EQ(placement.arena_bytes, 1024u);
}

TEST(PlanMemory, SmallBuffersFillTheGapOfALargeOne) {
  // The large one dies before the small ones are born.
  const std::vector<Lifetime> lives = {
      {4096, 0, 1, {}}, {256, 0, 9, {}}, {2048, 2, 9, {}}, {2048, 3, 9, {}}};
  const Placement placement = plan_memory(lives);
  expect_sound(lives, placement);
  EXPECT_EQ(placement.arena_bytes, 4352u);
}

TEST(PlanMemory, RandomPlansAreSoundAndTight) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    std::vector<Lifetime> lives;
    for (int64_t i = 0; i < 120; ++i) {
      const auto length = static_cast<int64_t>(random() % 6);
      lives.push_back({(random() % 64) * 512, i, i + length, {}});
    }
    const Placement placement = plan_memory(lives);
    expect_sound(lives, placement);
    EXPECT_LE(placement.arena_bytes, placement.lower_bound_bytes * 11 / 10);
  }
}

}  // namespace
}  // namespace kiln
