#include "formats/operation/operation.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
using Strings = std::vector<std::string>;

Operation sample() {
  Operation operation{"resize", {}};
  operation.set("scales", Doubles{1.0, 0.5, -0.0, 1e300, std::numeric_limits<double>::infinity()});
  operation.set("mode", std::string("li\"n\\e\x01\xff"));
  operation.set("axes", Ints{-1, 0, std::numeric_limits<int64_t>::min()});
  operation.set("none", Ints{});
  operation.set("no_reals", Doubles{});
  operation.set("no_strings", Strings{});
  operation.set("names", Strings{"a", "", "c, d"});
  operation.set("alpha", 0.1);
  operation.set("nan", std::bit_cast<double>(uint64_t{0xfff8000000000123}));
  operation.set("k", int64_t{3});
  return operation;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Operation, SetKeepsNamesSortedAndUnique) {
  Operation operation{"x", {}};
  operation.set("b", int64_t{1}).set("a", int64_t{2}).set("b", int64_t{3});
  ASSERT_EQ(operation.attributes.size(), 2u);
  EXPECT_EQ(operation.attributes[0].first, "a");
  EXPECT_EQ(operation.get_int("b", 0), 3);
}

TEST(Operation, AbsentOrOtherTypedAttributesYieldTheFallback) {
  Operation operation{"x", {}};
  operation.set("i", int64_t{1}).set("d", 2.5);
  EXPECT_EQ(operation.get_int("d", 7), 7);
  EXPECT_EQ(operation.get_double("i", 7.0), 7.0);
  EXPECT_EQ(operation.get_string("i", "s"), "s");
  EXPECT_TRUE(operation.get_ints("i").empty());
  EXPECT_EQ(operation.find("absent"), nullptr);
}

TEST(Operation, DoublesCompareByBits) {
  Operation a{"x", {}}, b{"x", {}};
  a.set("v", std::nan(""));
  b.set("v", std::nan(""));
  EXPECT_EQ(a, b);
  a.set("v", 0.0);
  b.set("v", -0.0);
  EXPECT_FALSE(a == b);
}

TEST(Operation, TextIsReadable) {
  Operation operation{"resize", {}};
  operation.set("scales", Doubles{1.0, 2.5}).set("mode", std::string("linear"));
  EXPECT_EQ(to_text(operation), R"(resize{mode="linear", scales=[1.0, 2.5]})");
  EXPECT_EQ(to_text(Operation{"add", {}}), "add");
}

TEST(Operation, TextRoundTrips) {
  const std::string text = to_text(sample()) + " tail";
  std::string_view rest = text;
  auto parsed = parse_operation(rest);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(*parsed, sample());
  EXPECT_EQ(rest, " tail");
}

TEST(Operation, ParseNamesWhatItFoundAndExpected) {
  for (const std::string text : {"", "x{", "x{a}", "x{a=}", "x{a=1, a=2}", "x{a=[1, 2.0]}",
                                 "x{a=\"b}", "x{a=\"\\q\"}", "x{a=99999999999999999999}"}) {
    std::string_view rest = text;
    auto parsed = parse_operation(rest);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.error().message.find("expected"), std::string::npos) << text;
  }
}

TEST(Operation, BinaryRoundTrips) {
  const std::string bytes = encode(sample());
  auto decoded = decode_operation(bytes_of(bytes));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(*decoded, sample());
}

TEST(Operation, DecodeRefusesTruncationAndTails) {
  const std::string bytes = encode(sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_operation(bytes_of(bytes.substr(0, size))).ok()) << size;
  }
  EXPECT_FALSE(decode_operation(bytes_of(bytes + "x")).ok());
}

TEST(Operation, DecodeAcceptsOnlyWhatEncodeMakes) {
  const std::string bytes = encode(sample());
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= static_cast<char>(1u << (random() % 8));
    auto decoded = decode_operation(bytes_of(damaged));
    if (!decoded.ok()) continue;
    EXPECT_EQ(encode(*decoded), damaged);
  }
}

TEST(Operation, DecodeRefusesUnsortedNames) {
  Operation operation{"x", {{"b", int64_t{1}}, {"a", int64_t{2}}}};
  auto decoded = decode_operation(bytes_of(encode(operation)));
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.error().message.find("'a'"), std::string::npos);
}

}  // namespace
}  // namespace kiln
