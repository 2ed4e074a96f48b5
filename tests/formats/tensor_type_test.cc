#include "formats/tensor_type.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace kiln {
namespace {

TEST(TensorType, PrintsAndParses) {
  const TensorType type{DType::kF8E4M3FN, {2, 0, 7}};
  EXPECT_EQ(to_string(type), "f8e4m3fn[2x0x7]");
  EXPECT_EQ(parse_tensor_type("f8e4m3fn[2x0x7]"), type);
  EXPECT_EQ(to_string(TensorType{DType::kI64, {}}), "i64[]");
  EXPECT_EQ(parse_tensor_type("i64[]"), (TensorType{DType::kI64, {}}));
}

TEST(TensorType, RefusesWhatIsNotAType) {
  for (const char* text : {"", "f32", "f32[", "f32]", "x32[2]", "f32[2x]", "f32[x2]", "f32[-1]",
                           "f32[2 x3]", "f32[9223372036854775808]", "f32[4294967296x4294967296]"}) {
    EXPECT_FALSE(parse_tensor_type(text)) << text;
  }
}

TEST(TensorType, EveryDTypeHasANameThatParsesBack) {
  for (uint8_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype) << int{i};
  }
}

TEST(TensorType, CountsElementsWithoutOverflow) {
  EXPECT_EQ(checked_element_count({}), 1);
  EXPECT_EQ(checked_element_count({2, 3, 4}), 24);
  EXPECT_EQ(checked_element_count({0, int64_t{1} << 40, int64_t{1} << 40}), std::nullopt);
  EXPECT_EQ(checked_element_count({int64_t{1} << 62}), int64_t{1} << 62);
  EXPECT_EQ(checked_element_count({int64_t{1} << 62, 2}), std::nullopt);
  EXPECT_EQ(checked_element_count({-1}), std::nullopt);
}

TEST(TensorType, FourBitTypesRoundUpToWholeBytes) {
  EXPECT_EQ((TensorType{DType::kI4, {3}}).bytes(), 2);
  EXPECT_EQ((TensorType{DType::kU4, {4}}).bytes(), 2);
  EXPECT_EQ((TensorType{DType::kBF16, {3, 3}}).bytes(), 18);
}

TEST(TensorType, StridesAreRowMajor) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(row_major_strides({}), Shape{});
}

}  // namespace
}  // namespace kiln
