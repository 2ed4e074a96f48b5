#include <xxhash.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "builder/ir/text.h"

namespace kiln::ir {
namespace {

constexpr size_t kShortConstant = 16;  // elements

// Calls visit(T{}) for dtypes that print as numbers; false for the others, which print as hex.
template <class Visitor>
bool visit_number(DType dtype, const Visitor& visit) {
  switch (dtype) {
    case DType::kF32:
      visit(float{});
      return true;
    case DType::kF64:
      visit(double{});
      return true;
    case DType::kI8:
      visit(int8_t{});
      return true;
    case DType::kI16:
      visit(int16_t{});
      return true;
    case DType::kI32:
      visit(int32_t{});
      return true;
    case DType::kI64:
      visit(int64_t{});
      return true;
    case DType::kU8:
    case DType::kBool:
      visit(uint8_t{});
      return true;
    case DType::kU16:
      visit(uint16_t{});
      return true;
    case DType::kU32:
      visit(uint32_t{});
      return true;
    case DType::kU64:
      visit(uint64_t{});
      return true;
    default:
      return false;
  }
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "hex ";
  for (std::byte byte : bytes) {
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
  }
  return text;
}

template <class T>
std::string number_text(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return {};  // payload and sign would be lost
  }
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

// Empty when a number does not print exactly.
template <class T>
std::string numbers_text(std::span<const std::byte> bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = number_text<T>(bytes.data() + i * sizeof(T));
    if (number.empty()) return {};
    text += (i ? ", " : "") + number;
  }
  return text;
}

template <class T>
bool all_equal(std::span<const std::byte> bytes) {
  return std::memcmp(bytes.data(), bytes.data() + sizeof(T), bytes.size() - sizeof(T)) == 0;
}

template <class T>
Result<SharedBytes> parse_numbers(std::string_view text, size_t count, bool splat) {
  std::vector<std::byte> bytes(count * sizeof(T));
  for (size_t i = 0; i < (splat ? 1 : count); ++i) {
    if (i && text.substr(0, 2) == ", ") text.remove_prefix(2);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) {
      return Error{ErrorCode::kInvalidArgument,
                   "constant: found '" + std::string(text) + "', expected a number"};
    }
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  if (!text.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "constant: found '" + std::string(text) + "' after the last element"};
  }
  for (size_t i = 1; splat && i < count; ++i) {
    std::memcpy(bytes.data() + i * sizeof(T), bytes.data(), sizeof(T));
  }
  return SharedBytes::take(std::move(bytes));
}

Result<SharedBytes> parse_hex(std::string_view text, size_t size) {
  std::vector<std::byte> bytes(size);
  if (text.size() != 2 * size) {
    return Error{ErrorCode::kInvalidArgument, "constant: found " + std::to_string(text.size()) +
                                                  " hex digits, expected " +
                                                  std::to_string(2 * size)};
  }
  for (size_t i = 0; i < size; ++i) {
    unsigned value = 0;
    const char* at = text.data() + 2 * i;
    if (std::from_chars(at, at + 2, value, 16).ptr != at + 2) {
      return Error{ErrorCode::kInvalidArgument, "constant: found a character that is no hex digit"};
    }
    bytes[i] = static_cast<std::byte>(value);
  }
  return SharedBytes::take(std::move(bytes));
}

}  // namespace

std::string constant_to_text(const TensorType& type, const SharedBytes& bytes, bool full) {
  const auto count = static_cast<size_t>(type.elements());
  std::string text;
  const bool is_short = full || count <= kShortConstant;
  visit_number(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (count > 1 && all_equal<T>(bytes.bytes)) {
      text = numbers_text<T>(bytes.bytes, 1);
      if (!text.empty()) text.insert(0, "splat ");
    } else if (is_short) {
      text = numbers_text<T>(bytes.bytes, count);
    }
  });
  if (!text.empty()) return text;
  if (is_short) return hex(bytes.bytes);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
  return "hash " + std::string(digits);
}

Result<SharedBytes> parse_constant(const TensorType& type, std::string_view text) {
  if (text.starts_with("hash ")) {
    return Error{ErrorCode::kUnsupported,
                 "constant: only its hash was printed; dump with full constants"};
  }
  if (text.starts_with("hex ")) {
    return parse_hex(text.substr(4), static_cast<size_t>(type.bytes()));
  }
  const bool splat = text.starts_with("splat ");
  if (splat) text.remove_prefix(6);
  Result<SharedBytes> result =
      Error{ErrorCode::kInvalidArgument,
            "constant: " + std::string(to_string(type.dtype)) + " is written as hex"};
  visit_number(type.dtype, [&](auto zero) {
    result = parse_numbers<decltype(zero)>(text, static_cast<size_t>(type.elements()), splat);
  });
  return result;
}

}  // namespace kiln::ir
