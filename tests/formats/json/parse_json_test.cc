#include "formats/json/parse_json.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

using nlohmann::json;

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(ParseJson, CountsBracketsOutsideOfStrings) {
  EXPECT_EQ(json_depth("3"), 0u);
  EXPECT_EQ(json_depth(R"({"a": [1, {}], "b": []})"), 3u);
  EXPECT_EQ(json_depth(R"(["[[\"[[\\", {}])"), 2u);
  EXPECT_EQ(json_depth("]]]["), 1u);
}

TEST(ParseJson, RefusesDeepText) {
  const auto deepest = parse_json<json>(nested(64));
  ASSERT_TRUE(deepest.ok()) << deepest.error().message;
  EXPECT_EQ(deepest->dump(), nested(64));
  const auto read = parse_json<json>(nested(65));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "nests 65 deep, expected at most 64");
}

TEST(ParseJson, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "\"\xff\"", "{\"a\"}", "1 2"}) {
    const auto read = parse_json<nlohmann::ordered_json>(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().message, "is no JSON");
  }
}

}  // namespace
}  // namespace kiln
