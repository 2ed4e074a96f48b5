// Checked access to an operation's attributes and input types, with errors that name the operation,
// what was found and what was expected. Attributes have no defaults here: the importer wrote them.
#pragma once
#include <climits>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/operation/operation.h"
#include "formats/tensor_type.h"

namespace kiln::host {

// Bounds pads, strides and window extents, so that sums and products of two stay in 64 bits.
inline constexpr int64_t kMaxAmount = int64_t{1} << 30;

Error reject(const Operation& operation, const std::string& message);
Error unsupported(const Operation& operation, const std::string& message);

// low <= value <= high.
Result<int64_t> int_attribute(const Operation& operation, std::string_view key,
                              int64_t low = INT64_MIN, int64_t high = INT64_MAX);
Result<bool> flag_attribute(const Operation& operation, std::string_view key);  // 0 or 1
Result<double> double_attribute(const Operation& operation, std::string_view key);
// Index of the string among the choices.
Result<size_t> choice_attribute(const Operation& operation, std::string_view key,
                                std::initializer_list<std::string_view> choices);
// `size` entries (any number if negative), each with low <= value <= high.
Result<std::vector<int64_t>> ints_attribute(const Operation& operation, std::string_view key,
                                            int64_t size, int64_t low = INT64_MIN,
                                            int64_t high = INT64_MAX);
Result<std::vector<double>> doubles_attribute(const Operation& operation, std::string_view key,
                                              int64_t size);
Result<std::vector<std::string>> strings_attribute(const Operation& operation, std::string_view key,
                                                   int64_t size);
// 0 <= axis < rank.
Result<int64_t> axis_attribute(const Operation& operation, int64_t rank);

using InputTypes = std::span<const TensorType>;

Result<> expect_inputs(const Operation& operation, InputTypes inputs, size_t least, size_t most);
inline Result<> expect_inputs(const Operation& operation, InputTypes inputs, size_t count) {
  return expect_inputs(operation, inputs, count, count);
}
Result<> expect_rank(const Operation& operation, InputTypes inputs, size_t i, int64_t least,
                     int64_t most = 64);
Result<> expect_shape(const Operation& operation, InputTypes inputs, size_t i, const Shape& shape);
Result<> expect_dtype(const Operation& operation, InputTypes inputs, size_t i, DType dtype);
Result<> expect_float(const Operation& operation, InputTypes inputs, size_t i);
Result<> expect_index(const Operation& operation, InputTypes inputs, size_t i);  // i32 or i64
// The result types, unless one of them is too large to exist.
Result<std::vector<TensorType>> results(const Operation& operation, std::vector<TensorType> types);

}  // namespace kiln::host
