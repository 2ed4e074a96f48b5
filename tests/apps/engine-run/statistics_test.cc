#include "apps/engine-run/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace kiln::run {
namespace {

TEST(Statistics, AreThoseOfOneToHundred) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1.0);  // order must not matter
  const Summary s = summarize(values);
  EXPECT_EQ(s.count, 100u);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 100);
  EXPECT_EQ(s.mean, 50.5);
  EXPECT_EQ(s.median, 50.5);
  EXPECT_EQ(s.p90, 90);
  EXPECT_EQ(s.p95, 95);
  EXPECT_EQ(s.p99, 99);
  EXPECT_NEAR(s.cv, std::sqrt(841.6666667) / 50.5, 1e-9);  // variance n(n+1)/12 of 1..n
}

TEST(Statistics, OfFewValuesAreValuesThatHappened) {
  const Summary three = summarize(std::vector<double>{3, 1, 2});
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.p90, 3);
  EXPECT_EQ(three.p99, 3);
  const Summary one = summarize(std::vector<double>{7});
  EXPECT_EQ(one.p90, 7);
  EXPECT_EQ(one.cv, 0);
  EXPECT_EQ(summarize({}).count, 0u);
}

TEST(Statistics, SteadyMeasurementsAreTrusted) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back(100 + i % 3);
  EXPECT_TRUE(trust_warnings(values).empty());
}

TEST(Statistics, WarnOfFewQueries) {
  const auto warnings = trust_warnings(std::vector<double>(9, 1.0));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("only 9 queries"), std::string::npos);
  const auto tail = trust_warnings(std::vector<double>(99, 1.0));
  ASSERT_EQ(tail.size(), 1u);
  EXPECT_NE(tail[0].find("p99 of 99 queries"), std::string::npos);
}

TEST(Statistics, WarnOfVariation) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back(i % 2 == 0 ? 100 : 120);
  const auto warnings = trust_warnings(values);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("varies by 9.1 %"), std::string::npos) << warnings[0];
}

TEST(Statistics, WarnOfDrift) {
  std::vector<double> values(100, 100.0);
  values.resize(200, 106.0);
  const auto warnings = trust_warnings(values);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("6.0 % slower"), std::string::npos) << warnings[0];
}

TEST(PartWarnings, AreForHostsCopiesAndSpreads) {
  EXPECT_TRUE(part_warnings({.compute = 2, .copies = 1, .enqueue = 1}).empty());
  const auto warnings =
      part_warnings({.compute = 1, .copies = 2, .enqueue = 6, .compute_cv = 0.08});
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_NE(warnings[0].find("takes it 2 times as long as the GPU"), std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[1].find("take 2 times as long as the steps"), std::string::npos);
  EXPECT_NE(warnings[2].find("varies by 8.0 %"), std::string::npos);
}

}  // namespace
}  // namespace kiln::run
