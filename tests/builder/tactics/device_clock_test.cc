#include "builder/tactics/device_clock.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr uint64_t kCache = 50'000'000;

TEST(DeviceClock, PutsRunsBehindEachOtherUntilTheirWeightsAreCold) {
  EXPECT_EQ(runs_in_a_graph(0, kCache), 16);
  EXPECT_EQ(runs_in_a_graph(8, kCache), 256);
  EXPECT_EQ(runs_in_a_graph(2'000'000, kCache), 51);
  EXPECT_EQ(runs_in_a_graph(33'554'432, kCache), 16);
  EXPECT_EQ(runs_in_a_graph(2 * kCache, kCache), 16);
}

// Each is cold by itself, but only behind another does it show how the two overlap.
TEST(DeviceClock, PutsRunsThatOutgrowTheCacheBehindEachOtherToo) {
  EXPECT_EQ(runs_in_a_graph(2 * kCache + 1, kCache), 4);
  EXPECT_EQ(runs_in_a_graph(234'881'024, kCache), 4);
}

TEST(DeviceClock, KeepsGraphsOfSlowCandidatesShort) {
  EXPECT_EQ(runs_in_a_short_graph(256, 3.5), 256);
  EXPECT_EQ(runs_in_a_short_graph(256, 100), 50);
  EXPECT_EQ(runs_in_a_short_graph(256, 80'000), 2);
  EXPECT_EQ(runs_in_a_short_graph(1, 80'000), 1);
  EXPECT_EQ(runs_in_a_short_graph(256, 0), 256);
}

}  // namespace
}  // namespace kiln
