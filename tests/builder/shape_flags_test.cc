#include "builder/shape_flags.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(ShapeFlags, ReadsShapesWithABatch) {
  const auto set = parse_shapes("ids:Bx128,x::0:3xBx5,s:scalar");
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->name, "");
  EXPECT_EQ(set->shapes.at("ids"), (Shape{-1, 128}));
  EXPECT_EQ(set->shapes.at("x::0"), (Shape{3, -1, 5}));
  EXPECT_EQ(set->shapes.at("s"), Shape{});
}

TEST(ShapeFlags, ReadsANamedSet) {
  const auto set = parse_shapes("long=ids:Bx512");
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->name, "long");
}

TEST(ShapeFlags, SaysWhichPieceIsWrong) {
  EXPECT_EQ(parse_shapes("ids:Bx128,mask").error().message,
            "--shapes: found 'mask', expected NAME:EXTENTS, for example ids:Bx128");
  EXPECT_FALSE(parse_shapes("ids:Bx-3").ok());
  EXPECT_FALSE(parse_shapes("ids:").ok());
  EXPECT_FALSE(parse_shapes("ids:1,ids:2").ok());
  EXPECT_FALSE(parse_shapes("").ok());
  EXPECT_FALSE(parse_shapes("a b=ids:1").ok());
  EXPECT_FALSE(parse_shapes("a\x1b[31m=ids:1").ok());
}

TEST(ShapeFlags, ReadsBatches) {
  EXPECT_EQ(parse_batches("1,4,32").value(), (std::vector<int64_t>{1, 4, 32}));
  for (const char* wrong : {"", "0", "4,1", "1,1", "1,x", "99999999999999999999"}) {
    EXPECT_FALSE(parse_batches(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace kiln
