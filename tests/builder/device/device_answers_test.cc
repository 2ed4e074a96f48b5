#include "builder/device/device_answers.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

using Values = DeviceAnswers::Values;

// Says how often it was asked.
struct Library {
  int asked = 0;
  DeviceAnswers::Ask ask() {
    return [this]() -> Result<Values> { return Values{std::to_string(++asked)}; };
  }
};

TEST(DeviceAnswers, AsksOnce) {
  DeviceAnswers answers;
  Library library;
  EXPECT_EQ(*answers.get("q", library.ask()), Values{"1"});
  EXPECT_EQ(*answers.get("q", library.ask()), Values{"1"});
  EXPECT_EQ(*answers.get("r", library.ask()), Values{"2"});
  EXPECT_EQ(*DeviceAnswers(answers.known()).get("q", nullptr), Values{"1"});
}

TEST(DeviceAnswers, KeepsRefusalsButNoFailures) {
  DeviceAnswers answers;
  ErrorCode code = ErrorCode::kUnsupported;
  const auto ask = [&]() -> Result<Values> { return Error{code, "no"}; };
  EXPECT_EQ(answers.get("q", ask).error().message, "no");
  code = ErrorCode::kDevice;
  EXPECT_EQ(answers.get("r", ask).error().code, ErrorCode::kDevice);
  EXPECT_EQ(answers.known().size(), 1u);
  EXPECT_EQ(answers.get("q", nullptr).error().message, "no");
  EXPECT_EQ(answers.missing(), 0u);
}

TEST(DeviceAnswers, CountsWhatIsMissing) {
  DeviceAnswers answers;
  const auto answer = answers.get("cudnn engines-12", nullptr);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(answer.error().message, "the timing cache does not tell cudnn engines-12");
  EXPECT_EQ(answers.missing(), 1u);
}

TEST(DeviceAnswers, RecordsOfTrialsOnlyWhatIsAskedForAgain) {
  DeviceAnswers answers;
  Library library;
  {
    const DeviceAnswers::Trial trial(&answers);
    for (const char* question : {"winner", "loser", "winner"}) {
      ASSERT_TRUE(answers.get(question, library.ask()).ok());
    }
    EXPECT_TRUE(answers.known().empty());
  }
  EXPECT_EQ(*answers.get("winner", library.ask()), Values{"1"});
  answers.end_trials();
  EXPECT_EQ(answers.known().size(), 1u);
  EXPECT_EQ(library.asked, 2);
}

}  // namespace
}  // namespace kiln
