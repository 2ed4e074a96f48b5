#include "formats/binary/byte_stream.h"

#include <gtest/gtest.h>

#include <limits>

namespace kiln {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(ByteStream, IntegersOfEverySizeComeBack) {
  using Limits = std::numeric_limits<int64_t>;
  const int64_t signed_values[] = {0, 1, -1, 63, -64, 64, 1 << 20, Limits::max(), Limits::min()};
  const uint64_t unsigned_values[] = {0, 127, 128, 1u << 31, ~uint64_t{0}};
  ByteWriter out;
  for (const int64_t v : signed_values) out.signed_int(v);
  for (const uint64_t v : unsigned_values) out.unsigned_int(v);
  const std::string bytes = out.take();
  ByteReader in(bytes_of(bytes));
  for (const int64_t v : signed_values) EXPECT_EQ(in.signed_int(), v);
  for (const uint64_t v : unsigned_values) EXPECT_EQ(in.unsigned_int(), v);
  EXPECT_TRUE(in.done());
}

TEST(ByteStream, SmallIntegersTakeOneByte) {
  ByteWriter out;
  out.unsigned_int(127);
  out.signed_int(-64);
  EXPECT_EQ(out.take(), std::string("\x7f\x7f"));
}

TEST(ByteStream, LongSpellingsAreRefused) {
  for (const std::string& bytes : {std::string("\x80\x00", 2), std::string(10, '\xff'),
                                   std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")}) {
    ByteReader in(bytes_of(bytes));
    EXPECT_EQ(in.unsigned_int(), 0u);
    EXPECT_FALSE(in.ok());
  }
}

TEST(ByteStream, CountsThatCannotFitAreRefusedBeforeMemoryIsTaken) {
  ByteWriter out;
  out.unsigned_int(uint64_t{1} << 60);
  const std::string bytes = out.take();
  ByteReader in(bytes_of(bytes));
  EXPECT_EQ(in.string(), "");
  EXPECT_FALSE(in.ok());
}

TEST(ByteStream, AfterTheEndEverythingIsEmpty) {
  ByteReader in(bytes_of(""));
  EXPECT_EQ(in.fixed64(), 0u);
  EXPECT_EQ(in.signed_int(), 0);
  EXPECT_EQ(in.string(), "");
  EXPECT_FALSE(in.done());
}

}  // namespace
}  // namespace kiln
