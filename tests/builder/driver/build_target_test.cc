#include "builder/driver/build_target.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kiln {
namespace {

bool has(const ChosenTarget& target, std::string_view name) {
  return std::any_of(target.providers.begin(), target.providers.end(),
                     [&](const TacticProvider& provider) { return provider.name == name; });
}

TEST(BuildTarget, DoesWithoutDisabledTactics) {
  BuildOptions options;
  options.target = BuildTarget::kHost;
  const auto all = choose_target(options, {});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_TRUE(has(*all, "loop"));
  options.disabled_tactics = {"loop", "loop"};
  const auto fewer = choose_target(options, {});
  ASSERT_TRUE(fewer.ok()) << fewer.error().message;
  EXPECT_FALSE(has(*fewer, "loop"));
  EXPECT_EQ(fewer->providers.size() + 1, all->providers.size());
}

TEST(BuildTarget, NamesTheTacticsThereAre) {
  BuildOptions options;
  options.target = BuildTarget::kHost;
  options.disabled_tactics = {"cublas"};
  const auto chosen = choose_target(options, {});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(chosen.error().message.find("'cublas'"), std::string::npos) << chosen.error().message;
  EXPECT_NE(chosen.error().message.find("loop, "), std::string::npos) << chosen.error().message;
}

}  // namespace
}  // namespace kiln
