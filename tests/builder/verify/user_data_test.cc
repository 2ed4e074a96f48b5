#include "builder/verify/user_data.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>

namespace kiln {
namespace {

template <class T>
npy::Array array_of(const std::string& name, DType dtype, Shape shape, std::vector<T> values) {
  const auto span = std::as_bytes(std::span(values));
  std::vector<std::byte> bytes(span.begin(), span.end());
  return {name, {dtype, std::move(shape)}, false, SharedBytes::take(std::move(bytes))};
}

npy::Array rows_of_x(int64_t rows) {
  std::vector<float> values;
  for (int64_t r = 0; r < rows; ++r) values.insert(values.end(), 3, static_cast<float>(r));
  return array_of("x", DType::kF32, {rows, 3}, values);
}

class UserRequests : public ::testing::Test {
 protected:
  void SetUp() override {
    graph_.add_input("x", {DType::kF32, {2, 3}});
    graph_.add_input("table", {DType::kI64, {2}});
    point_.name = "b2";
    point_.batch = 2;
    point_.batch_axes["x"] = 0;
  }

  Result<std::vector<std::vector<HostTensor>>> requests(std::vector<npy::Array> arrays,
                                                        int64_t most_rows = 16) {
    return user_requests({"d.npz", std::move(arrays)}, graph_, point_, most_rows);
  }
  std::string error_of(std::vector<npy::Array> arrays) {
    const auto result = requests(std::move(arrays));
    EXPECT_FALSE(result.ok());
    if (result.ok()) return "";
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    return result.error().message;
  }

  ir::Graph graph_;
  ShapePoint point_;
  npy::Array table_ = array_of<int64_t>("table", DType::kI64, {2}, {7, 8});
};

std::vector<float> first_column(const HostTensor& x) {
  std::vector<float> column;
  for (size_t i = 0; i < x.bytes.size(); i += 3 * sizeof(float)) {
    column.emplace_back();
    std::memcpy(&column.back(), x.bytes.data() + i, sizeof(float));
  }
  return column;
}

TEST_F(UserRequests, FillTheLastRequestWithTheFirstRowsAgain) {
  const auto made = requests({rows_of_x(3), table_});
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_EQ(made->size(), 2u);
  EXPECT_EQ(first_column((*made)[0][0]), (std::vector<float>{0, 1}));
  EXPECT_EQ(first_column((*made)[1][0]), (std::vector<float>{2, 0}));
  EXPECT_EQ((*made)[1][1].type, table_.type);
}

TEST_F(UserRequests, StopAtTheMostRows) {
  const auto made = requests({rows_of_x(100), table_}, 3);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->size(), 2u);
}

TEST_F(UserRequests, CountRowsOfMoreThanOneElement) {
  point_.batch = 1;  // two of the axis are one row
  const auto made = requests({rows_of_x(4), table_});
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_EQ(made->size(), 2u);
  EXPECT_EQ(first_column((*made)[1][0]), (std::vector<float>{2, 3}));
  EXPECT_NE(error_of({rows_of_x(3), table_}).find("array 'x' is f32[3x3]"), std::string::npos);
}

TEST_F(UserRequests, SayWhatDoesNotFit) {
  EXPECT_EQ(error_of({rows_of_x(2)}), "verify data 'd.npz': has no array 'table'; it has x");
  EXPECT_EQ(error_of({array_of<int32_t>("x", DType::kI32, {2, 3}, {1, 2, 3, 4, 5, 6}), table_}),
            "verify data 'd.npz': array 'x' is i32[2x3], expected f32[2x3] with any number of rows "
            "along axis 0");
  EXPECT_EQ(error_of({rows_of_x(2), array_of<int64_t>("table", DType::kI64, {3}, {1, 2, 3})}),
            "verify data 'd.npz': array 'table' is i64[3], expected i64[2]");
  EXPECT_NE(error_of({rows_of_x(0), table_}).find("array 'x' is f32[0x3]"), std::string::npos);
}

TEST_F(UserRequests, ArraysAgreeOnTheirRows) {
  graph_.add_input("z", {DType::kF32, {2, 3}});
  point_.batch_axes["z"] = 0;
  auto z = rows_of_x(4);
  z.name = "z";
  EXPECT_EQ(error_of({rows_of_x(3), table_, z}),
            "verify data 'd.npz': array 'z' has 4 rows, 'x' has 3");
}

TEST_F(UserRequests, FixedValuesMustBeThoseOfThePoint) {
  point_.fixed_values["table"] = {table_.type,
                                  {table_.data.bytes.begin(), table_.data.bytes.end()}};
  EXPECT_TRUE(requests({rows_of_x(2), table_}).ok());
  const auto other = array_of<int64_t>("table", DType::kI64, {2}, {7, 9});
  EXPECT_NE(error_of({rows_of_x(2), other}).find("array 'table' has another value"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln
