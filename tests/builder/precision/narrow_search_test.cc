#include "builder/precision/narrow_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kiln::precision {
namespace {

// A model whose damage is the sum of its narrow items', and `together` more when all are narrow.
struct Fake {
  std::vector<double> damages;
  double together = 0, always = 0;
  int whole = 0, screens = 0;

  double sum(const std::vector<bool>& narrow) const {
    double damage = always;
    bool all = true;
    for (size_t i = 0; i < narrow.size(); ++i) {
      damage += narrow[i] ? damages[i] : 0;
      all = all && narrow[i];
    }
    return damage + (all ? together : 0);
  }

  NarrowMeasures measures() {
    return {[this](const std::vector<bool>& narrow) -> Result<double> {
              ++whole;
              return sum(narrow);
            },
            [this](const std::vector<bool>& narrow) -> Result<double> {
              ++screens;
              return sum(narrow);
            }};
  }
};

NarrowChoice search(Fake& fake, std::vector<double> costs, double limit) {
  auto choice = search_narrow(costs, limit, fake.measures());
  EXPECT_TRUE(choice.ok());
  return choice.value();
}

TEST(NarrowSearch, OneMeasurementIfAllNarrowHolds) {
  Fake fake{{1, 1, 1}};
  const NarrowChoice choice = search(fake, {1, 1, 1}, 3);
  EXPECT_TRUE(choice.held);
  EXPECT_EQ(choice.narrow, std::vector<bool>({true, true, true}));
  EXPECT_TRUE(choice.alone.empty());
  EXPECT_EQ(choice.measurements, 1);
}

TEST(NarrowSearch, KeepsTheOneThatHarms) {
  Fake fake{{0.1, 9, 0.1, 0.1}};
  const NarrowChoice choice = search(fake, {1, 1, 1, 1}, 0.5);
  EXPECT_TRUE(choice.held);
  EXPECT_EQ(choice.narrow, std::vector<bool>({true, false, true, true}));
  EXPECT_DOUBLE_EQ(choice.damage, 0.3 + 0);
  EXPECT_DOUBLE_EQ(choice.alone[1], 9);
  EXPECT_DOUBLE_EQ(choice.all_narrow, 9.3);
}

TEST(NarrowSearch, WeighsDamageAgainstCost) {
  // Two cheap items save as much as the dear one.
  Fake fake{{4, 2, 2}};
  const NarrowChoice choice = search(fake, {100, 1, 1}, 4);
  EXPECT_EQ(choice.narrow, std::vector<bool>({true, false, false}));
}

TEST(NarrowSearch, NeverKeepsMoreThanItsOrderNeeds) {
  for (size_t needed = 1; needed <= 40; ++needed) {
    Fake fake{std::vector<double>(40)};
    for (size_t i = 0; i < 40; ++i) fake.damages[i] = 1 + static_cast<double>(i) / 100;
    double limit = 1e-9;
    for (size_t i = 0; i < 40 - needed; ++i) limit += fake.damages[i];
    const NarrowChoice choice = search(fake, std::vector<double>(40, 1.0), limit);
    EXPECT_TRUE(choice.held);
    EXPECT_EQ(std::count(choice.narrow.begin(), choice.narrow.end(), false), needed);
    EXPECT_EQ(fake.screens, 40);
    EXPECT_LE(fake.whole, 10) << needed;
  }
}

// Measured with both narrow, one undoes the harm of the other.
TEST(NarrowSearch, KeepsAllThatHarmMoreAloneThanAllMay) {
  Fake fake{{4, 5, 0.1}};
  NarrowMeasures measures = fake.measures();
  measures.whole = [&](const std::vector<bool>& narrow) -> Result<double> {
    return narrow[1] ? 9 : 0.2;
  };
  const auto choice = search_narrow(std::vector<double>{1, 1, 1}, 3, measures);
  ASSERT_TRUE(choice.ok());
  EXPECT_TRUE(choice->held);
  EXPECT_EQ(choice->narrow, std::vector<bool>({false, false, true}));
}

TEST(NarrowSearch, TrustsMeasurementsNotTheSum) {
  // Together they do far more harm than alone, until one of them is wide.
  Fake fake{{1, 1, 1, 1}, 100};
  const NarrowChoice choice = search(fake, {1, 1, 1, 1}, 3);
  EXPECT_EQ(std::count(choice.narrow.begin(), choice.narrow.end(), false), 1);
}

TEST(NarrowSearch, SaysWhenNothingHelps) {
  Fake fake{{1, 1}, 0, 5};
  const NarrowChoice choice = search(fake, {1, 1}, 3);
  EXPECT_FALSE(choice.held);
  EXPECT_EQ(choice.narrow, std::vector<bool>({false, false}));
  EXPECT_DOUBLE_EQ(choice.damage, 5);
}

TEST(NarrowSearch, NanIsTheWorstDamage) {
  Fake fake{{std::nan(""), 1}};
  const NarrowChoice choice = search(fake, {1, 1}, 2);
  EXPECT_TRUE(choice.held);
  EXPECT_EQ(choice.narrow, std::vector<bool>({false, true}));
  EXPECT_EQ(choice.all_narrow, std::numeric_limits<double>::infinity());
}

TEST(NarrowSearch, ReportsAFailedMeasurement) {
  const DamageFn fails = [](const std::vector<bool>&) -> Result<double> {
    return Error{ErrorCode::kOutOfMemory, "no memory"};
  };
  const std::vector<double> costs{1};
  EXPECT_FALSE(search_narrow(costs, 1, {fails, fails}).ok());
}

}  // namespace
}  // namespace kiln::precision
