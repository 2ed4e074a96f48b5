#include "engine/host/attributes.h"

#include <algorithm>

namespace kiln::host {
namespace {

std::string quoted(std::string_view key) { return "attribute '" + std::string(key) + "'"; }

template <class T>
Result<const T*> find(const Operation& operation, std::string_view key, const char* what) {
  const AttributeValue* value = operation.find(key);
  if (!value) return reject(operation, quoted(key) + " is missing, expected " + what);
  const T* typed = std::get_if<T>(value);
  if (!typed) return reject(operation, quoted(key) + " has the wrong type, expected " + what);
  return typed;
}

Result<> check_size(const Operation& operation, std::string_view key, size_t found,
                    int64_t expected) {
  if (expected < 0 || static_cast<int64_t>(found) == expected) return Ok();
  return reject(operation, quoted(key) + " has " + std::to_string(found) + " entries, expected " +
                               std::to_string(expected));
}

Result<> check_range(const Operation& operation, std::string_view key, int64_t value, int64_t low,
                     int64_t high) {
  if (value >= low && value <= high) return Ok();
  return reject(operation, quoted(key) + " is " + std::to_string(value) + ", expected " +
                               std::to_string(low) + " to " + std::to_string(high));
}

std::string input_text(InputTypes inputs, size_t i) {
  return "input " + std::to_string(i) + " is " + to_string(inputs[i]);
}

}  // namespace

Error reject(const Operation& operation, const std::string& message) {
  return {ErrorCode::kInvalidArgument, operation.name + ": " + message};
}

Error unsupported(const Operation& operation, const std::string& message) {
  return {ErrorCode::kUnsupported, operation.name + ": " + message};
}

Result<int64_t> int_attribute(const Operation& operation, std::string_view key, int64_t low,
                              int64_t high) {
  KILN_ASSIGN_OR_RETURN(const auto* value, find<int64_t>(operation, key, "an integer"));
  KILN_RETURN_IF_ERROR(check_range(operation, key, *value, low, high));
  return *value;
}

Result<bool> flag_attribute(const Operation& operation, std::string_view key) {
  KILN_ASSIGN_OR_RETURN(const int64_t value, int_attribute(operation, key, 0, 1));
  return value == 1;
}

Result<double> double_attribute(const Operation& operation, std::string_view key) {
  KILN_ASSIGN_OR_RETURN(const auto* value, find<double>(operation, key, "a number"));
  return *value;
}

Result<size_t> choice_attribute(const Operation& operation, std::string_view key,
                                std::initializer_list<std::string_view> choices) {
  KILN_ASSIGN_OR_RETURN(const auto* value, find<std::string>(operation, key, "a string"));
  std::string listed;
  size_t i = 0;
  for (std::string_view choice : choices) {
    if (choice == *value) return i;
    listed += (i++ ? ", " : "") + std::string(choice);
  }
  return reject(operation, quoted(key) + " is '" + *value + "', expected one of " + listed);
}

Result<std::vector<int64_t>> ints_attribute(const Operation& operation, std::string_view key,
                                            int64_t size, int64_t low, int64_t high) {
  KILN_ASSIGN_OR_RETURN(const auto* values,
                        find<std::vector<int64_t>>(operation, key, "a list of integers"));
  KILN_RETURN_IF_ERROR(check_size(operation, key, values->size(), size));
  for (int64_t value : *values) {
    KILN_RETURN_IF_ERROR(check_range(operation, key, value, low, high));
  }
  return *values;
}

Result<std::vector<double>> doubles_attribute(const Operation& operation, std::string_view key,
                                              int64_t size) {
  KILN_ASSIGN_OR_RETURN(const auto* values,
                        find<std::vector<double>>(operation, key, "a list of numbers"));
  KILN_RETURN_IF_ERROR(check_size(operation, key, values->size(), size));
  return *values;
}

Result<std::vector<std::string>> strings_attribute(const Operation& operation, std::string_view key,
                                                   int64_t size) {
  KILN_ASSIGN_OR_RETURN(const auto* values,
                        find<std::vector<std::string>>(operation, key, "a list of strings"));
  KILN_RETURN_IF_ERROR(check_size(operation, key, values->size(), size));
  return *values;
}

Result<int64_t> axis_attribute(const Operation& operation, int64_t rank) {
  if (rank == 0) return reject(operation, "the input is a scalar, expected at least one axis");
  return int_attribute(operation, "axis", 0, rank - 1);
}

Result<> expect_inputs(const Operation& operation, InputTypes inputs, size_t least, size_t most) {
  if (inputs.size() >= least && inputs.size() <= most) return Ok();
  std::string expected = std::to_string(least);
  if (most != least) expected += " to " + std::to_string(most);
  return reject(operation,
                "found " + std::to_string(inputs.size()) + " inputs, expected " + expected);
}

Result<> expect_rank(const Operation& operation, InputTypes inputs, size_t i, int64_t least,
                     int64_t most) {
  if (inputs[i].rank() >= least && inputs[i].rank() <= most) return Ok();
  std::string expected = std::to_string(least);
  if (most == 64)
    expected += " or more";
  else if (most != least)
    expected += " to " + std::to_string(most);
  return reject(operation, input_text(inputs, i) + ", expected rank " + expected);
}

Result<> expect_shape(const Operation& operation, InputTypes inputs, size_t i, const Shape& shape) {
  if (inputs[i].shape == shape) return Ok();
  return reject(operation, input_text(inputs, i) + ", expected shape " + to_string(shape));
}

Result<> expect_dtype(const Operation& operation, InputTypes inputs, size_t i, DType dtype) {
  if (inputs[i].dtype == dtype) return Ok();
  return reject(operation,
                input_text(inputs, i) + ", expected type " + std::string(to_string(dtype)));
}

Result<> expect_float(const Operation& operation, InputTypes inputs, size_t i) {
  if (is_float(inputs[i].dtype)) return Ok();
  return reject(operation, input_text(inputs, i) + ", expected a floating-point type");
}

Result<> expect_index(const Operation& operation, InputTypes inputs, size_t i) {
  if (inputs[i].dtype == DType::kI32 || inputs[i].dtype == DType::kI64) return Ok();
  return reject(operation, input_text(inputs, i) + ", expected i32 or i64");
}

Result<std::vector<TensorType>> results(const Operation& operation, std::vector<TensorType> types) {
  constexpr int64_t kMaxElements = int64_t{1} << 56;
  for (const TensorType& type : types) {
    const auto count = checked_element_count(type.shape);
    if (!count || *count > kMaxElements) {
      return reject(operation, "the result of shape " + to_string(type.shape) + " is too large");
    }
  }
  return types;
}

}  // namespace kiln::host
