#include "builder/tactics/select_tactics.h"

#include <gtest/gtest.h>

#include <map>

namespace kiln {
namespace {

// A clock that says what the test wants, by tactic key.
class FakeJudge : public Judge {
 public:
  std::map<std::string, Timing> timings;
  std::string last_key;
  int begun = 0, judged = 0;

  Result<> begin(const TacticQuery&) override {
    ++begun;
    return Ok();
  }
  Timing judge(const Lowered& lowered, double) override {
    ++judged;
    return timings.at(std::get<HostCall>(lowered.steps.at(0)).operation.get_string("to", ""));
  }
};

Timing right(double us) { return {.median_us = us, .spread_us = 0, .verified = true}; }
Timing wrong() {
  return {.median_us = 0, .spread_us = 0, .verified = false, .error = "off by one"};
}

// Tactics "bf16" and "f16" are casts to that type, so that the fake judge can tell them apart.
Result<Lowered> lower_cast(const TacticQuery&, const Tactic& tactic) {
  Lowered lowered;
  Operation cast{"cast", {}};
  cast.set("to", tactic.key).set("saturate", int64_t{1});
  lowered.temporaries.push_back({*parse_dtype(tactic.key), {8}});
  lowered.steps.emplace_back(
      HostCall{cast, {{LocalBuffer::Kind::kInput, 0}}, {{LocalBuffer::Kind::kTemporary, 0}}});
  return lowered;
}

constexpr TacticProvider kFirst = {
    "first", 1, Trial::kAlways,
    [](const TacticQuery&, std::string&) -> std::vector<Tactic> { return {{"bf16"}, {"f16"}}; },
    lower_cast};
constexpr TacticProvider kSecond = {
    "second", 1, Trial::kAlways,
    [](const TacticQuery&, std::string&) -> std::vector<Tactic> { return {{"f64"}}; }, lower_cast};
constexpr TacticProvider kNone = {
    "none", 1, Trial::kAlways,
    [](const TacticQuery&, std::string& refusal) -> std::vector<Tactic> {
      refusal = "wants rank 7";
      return {};
    },
    lower_cast};

class SelectTactic : public ::testing::Test {
 protected:
  SelectTactic() {
    auto body = std::make_shared<ir::Graph>();
    const auto x = body->add_input("x", type_);
    body->mark_output(body->result(*body->add_node("e", {}, ir::Pointwise{ScalarFn::kExp}, {x})));
    region_ = {ir::Region::Kind::kLoop, body, {"exp_0"}, ""};
  }

  Result<Selection> select() {
    SelectionContext context{providers_, &judge_, cache_, "lab"};
    KILN_ASSIGN_OR_RETURN(auto selection, select_tactic(query_, context));
    return *std::move(selection);
  }

  TensorType type_{DType::kF32, {8}};
  ir::Region region_;
  DeviceInfo device_;
  FakeJudge judge_;
  TimingCache cache_;
  std::vector<TacticProvider> providers_ = {kNone, kFirst, kSecond};
  TacticQuery query_{region_, {type_}, {type_}, {std::nullopt}, device_, {}};
};

TEST_F(SelectTactic, TakesTheFastestThatIsRight) {
  judge_.timings = {{"bf16", wrong()}, {"f16", right(5)}, {"f64", right(3)}};
  const auto selection = select();
  ASSERT_TRUE(selection.ok()) << selection.error().message;
  const auto& candidates = selection->record.candidates;
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].verdict, report::Verdict::kWrong);
  EXPECT_EQ(candidates[0].reason, "off by one");
  EXPECT_EQ(candidates[1].verdict, report::Verdict::kSlower);
  EXPECT_EQ(candidates[1].reason, "1.67 times slower");
  EXPECT_EQ(candidates[2].verdict, report::Verdict::kChosen);
  EXPECT_EQ(selection->record.chosen, 2);
  ASSERT_EQ(selection->record.refusals.size(), 1u);
  EXPECT_EQ(selection->record.refusals[0].reason, "wants rank 7");
  EXPECT_EQ(judge_.begun, 1);
}

TEST_F(SelectTactic, PrefersTheFirstWithinTheNoise) {
  judge_.timings = {{"bf16", right(100.5)}, {"f16", right(101)}, {"f64", right(100)}};
  const auto selection = select();
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(selection->record.chosen, 0);
}

// Lowered ahead, so that kernels are compiled at once: what wins, and nothing while that is
// unknown.
TEST_F(SelectTactic, LowersTheWinnerThatTheCacheKnows) {
  static std::vector<std::string> lowered;
  lowered.clear();
  providers_ = {{"first", 1, Trial::kAlways, kFirst.candidates,
                 [](const TacticQuery& query, const Tactic& tactic) {
                   lowered.push_back(tactic.key);
                   return lower_cast(query, tactic);
                 }}};
  SelectionContext context{providers_, &judge_, cache_, "lab"};
  lower_known_winner(query_, context);
  EXPECT_TRUE(lowered.empty());
  judge_.timings = {{"bf16", right(7)}, {"f16", right(5)}};
  ASSERT_TRUE(select().ok());
  lowered.clear();
  lower_known_winner(query_, context);
  EXPECT_EQ(lowered, std::vector<std::string>{"f16"});
  EXPECT_EQ(judge_.judged, 2);
}

TEST_F(SelectTactic, JudgesNothingThatTheCacheKnows) {
  judge_.timings = {{"bf16", right(7)}, {"f16", right(5)}, {"f64", right(6)}};
  const auto first = select();
  ASSERT_TRUE(first.ok());
  judge_.timings.clear();
  const auto second = select();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->record.chosen, first->record.chosen);
  EXPECT_EQ(judge_.judged, 3);
  EXPECT_EQ(judge_.begun, 1);
}

TEST_F(SelectTactic, PassesOverWhatIsBanned) {
  judge_.timings = {{"bf16", right(1)}, {"f16", right(5)}, {"f64", right(6)}};
  SelectionContext context{providers_, &judge_, cache_, "lab"};
  ban_tactic(select()->winner, context);
  const auto selection = select();
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(selection->record.chosen, 1);
  EXPECT_EQ(selection->record.candidates[0].verdict, report::Verdict::kWrong);
}

// Where the device is elsewhere.
TEST_F(SelectTactic, WithoutAJudgeTakesWhatTheCacheKnows) {
  SelectionContext context{providers_, nullptr, cache_, "lab"};
  auto selection = select_tactic(query_, context);
  ASSERT_TRUE(selection.ok()) << selection.error().message;
  EXPECT_FALSE(selection->has_value());
  judge_.timings = {{"bf16", wrong()}, {"f16", right(5)}, {"f64", right(6)}};
  const auto judged = select();
  ASSERT_TRUE(judged.ok());
  selection = select_tactic(query_, context);
  ASSERT_TRUE(selection.ok() && selection->has_value());
  EXPECT_EQ((*selection)->record, judged->record);
  // A candidate that was never timed does not stand in the way of one that was.
  cache_.environments["lab"].timings[region_key(query_)].erase("first@1/bf16");
  selection = select_tactic(query_, context);
  ASSERT_TRUE(selection.ok() && selection->has_value());
  EXPECT_EQ((*selection)->record.chosen, 1);
  EXPECT_EQ((*selection)->record.candidates[0].reason, "the timing cache does not know it");
  // Known to be wrong is not unknown.
  for (const char* key : {"first@1/bf16", "first@1/f16", "second@1/f64"}) {
    cache_.record("lab", region_key(query_), key, wrong());
  }
  selection = select_tactic(query_, context);
  ASSERT_FALSE(selection.ok());
  EXPECT_EQ(selection.error().code, ErrorCode::kVerification);
}

TEST_F(SelectTactic, FailsWhenNoneIsRight) {
  judge_.timings = {{"bf16", wrong()}, {"f16", wrong()}, {"f64", wrong()}};
  const auto selection = select();
  ASSERT_FALSE(selection.ok());
  EXPECT_EQ(selection.error().code, ErrorCode::kVerification);
  EXPECT_EQ(selection.error().message,
            "no tactic is right: first/bf16: off by one; first/f16: off by one; second/f64: off by "
            "one");
}

TEST_F(SelectTactic, KeysTellConstantInputsApart) {
  const TacticQuery variable{region_, {type_}, {type_}, {std::nullopt}, device_, {}};
  const TacticQuery constant{region_, {type_}, {type_}, {SharedBytes{}}, device_, {}};
  EXPECT_NE(region_key(variable), region_key(constant));
}

}  // namespace
}  // namespace kiln
