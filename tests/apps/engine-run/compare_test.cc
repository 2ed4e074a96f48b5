#include "apps/engine-run/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace kiln::run {
namespace {

template <class T>
NamedArray array_of(DType dtype, Shape shape, std::vector<T> values, const char* name = "y") {
  NamedArray array{name, {dtype, std::move(shape)}, {}};
  array.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

NamedArray floats(Shape shape, std::vector<float> values) {
  return array_of(DType::kF32, std::move(shape), std::move(values));
}

TEST(Compare, FindsTheWorstElement) {
  const auto found = floats({2, 3}, {1, 2, 3, 4, 5.5, 6});
  const auto expected = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto result = compare(found, expected, {});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->passed);
  EXPECT_EQ(result->wrong_elements, 1);
  EXPECT_EQ(result->max_abs_error, 0.5);
  EXPECT_EQ(result->max_rel_error, 0.1);
  EXPECT_EQ(result->worst_index, (Shape{1, 1}));
  EXPECT_EQ(result->worst_found, 5.5);
  EXPECT_EQ(result->worst_expected, 5);
  EXPECT_EQ(result->worst_row, 1);
  // (16 + 27.5 + 36) / (sqrt(82.25) sqrt(77))
  EXPECT_NEAR(result->min_row_cosine, 79.5 / std::sqrt(82.25 * 77), 1e-12);
}

TEST(Compare, ToleranceGrowsWithTheExpectedValue) {
  const auto expected = floats({1}, {1000});
  EXPECT_TRUE(compare(floats({1}, {1000.9f}), expected, {})->passed);
  EXPECT_FALSE(compare(floats({1}, {1001.1f}), expected, {})->passed);
}

TEST(Compare, NanAndInfinityMustStandAtTheSamePlaces) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const auto expected = floats({4}, {nan, inf, -inf, 1});
  EXPECT_TRUE(compare(expected, expected, {.cosine = 0.999})->passed);
  const auto other = compare(floats({4}, {1, inf, -inf, 1}), expected, {});
  EXPECT_FALSE(other->passed);
  EXPECT_EQ(other->worst_index, Shape{0});
  EXPECT_EQ(other->min_row_cosine, -1);
  EXPECT_FALSE(compare(floats({4}, {nan, -inf, -inf, 1}), expected, {})->passed);
}

TEST(Compare, ErrorsAreInfiniteWhereNoNumberTellsThem) {
  const double infinite = std::numeric_limits<double>::infinity();
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const struct {
    float found, expected;
    double abs, rel;
  } cases[] = {{nan, 2, infinite, infinite},
               {2, nan, infinite, infinite},
               {inf, 2, infinite, infinite},
               {2, -inf, infinite, infinite},
               {-inf, inf, infinite, infinite},
               {nan, inf, infinite, infinite},
               {3.5f, 0, 3.5, infinite},
               {0, 4, 4, 1},
               {0, 0, 0, 0},
               {nan, nan, 0, 0},
               {-inf, -inf, 0, 0}};
  for (const auto& c : cases) {
    // The numbers around it neither hide it nor add to it.
    const auto result = compare(floats({3}, {1, c.found, 8}), floats({3}, {1, c.expected, 8}), {});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->max_abs_error, c.abs) << c.found << " for " << c.expected;
    EXPECT_EQ(result->max_rel_error, c.rel) << c.found << " for " << c.expected;
    EXPECT_EQ(result->wrong_elements, c.abs > 0 ? 1 : 0) << c.found << " for " << c.expected;
  }
}

TEST(Compare, CosineIsOfTheWorstRow) {
  const auto found = floats({2, 2}, {1, 0, 1, 1}), expected = floats({2, 2}, {1, 0, 1, 0});
  const auto result = compare(found, expected, {.elements = false, .cosine = 0.9});
  EXPECT_NEAR(result->min_row_cosine, std::sqrt(0.5), 1e-12);
  EXPECT_EQ(result->worst_row, 1);
  EXPECT_FALSE(result->passed);
  EXPECT_TRUE(compare(found, expected, {.elements = false, .cosine = 0.7})->passed);
}

TEST(Compare, IntegersMustBeEqual) {
  const auto expected = array_of<int64_t>(DType::kI64, {2}, {1 << 20, (int64_t{1} << 60) + 1});
  EXPECT_TRUE(compare(expected, expected, {})->passed);
  const auto near = array_of<int64_t>(DType::kI64, {2}, {(1 << 20) + 1, (int64_t{1} << 60) + 1});
  EXPECT_FALSE(compare(near, expected, {})->passed);
  const auto beyond_double = array_of<int64_t>(DType::kI64, {2}, {1 << 20, int64_t{1} << 60});
  const auto result = compare(beyond_double, expected, {});
  EXPECT_FALSE(result->passed);
  EXPECT_EQ(result->wrong_elements, 1);
  EXPECT_EQ(result->max_abs_error, 1);
  EXPECT_EQ(result->worst_index, Shape{1});
}

TEST(Compare, TypesMayDifferShapesMayNot) {
  const auto half = array_of<uint16_t>(DType::kF16, {2}, {0x3C00, 0x4000});  // 1, 2
  EXPECT_TRUE(compare(half, floats({2}, {1, 2}), {})->passed);
  const auto result = compare(half, floats({1, 2}, {1, 2}), {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "output 'y' is f16[2], but its reference is f32[1x2]");
}

TEST(Compare, NamesOutputsWithoutReference) {
  const std::vector<NamedArray> found = {floats({1}, {1})};
  const std::vector<NamedArray> other = {array_of<float>(DType::kF32, {1}, {1}, "z")};
  const auto result = compare_all(found, other, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "the reference has no array for output 'y'; it holds 'z'");
}

TEST(Compare, EmptyArraysAreEqual) {
  EXPECT_TRUE(compare(floats({0, 3}, {}), floats({0, 3}, {}), {.cosine = 0.9})->passed);
}

}  // namespace
}  // namespace kiln::run
