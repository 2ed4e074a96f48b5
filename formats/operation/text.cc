// The text form: `name{key=value, ...}`, the braces only when there are attributes. A real number
// always shows a point, an exponent, or is inf or nan, so that it differs from an integer; an
// empty list of reals or strings is `reals[]` or `strings[]`.
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "formats/operation/operation.h"

namespace kiln {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

constexpr uint64_t kPlainNan = 0x7ff8000000000000;

void print(std::string& out, int64_t value) { out += std::to_string(value); }

void print(std::string& out, double value) {
  char digits[64];
  if (std::isnan(value)) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    out += "nan";
    if (bits == kPlainNan) return;
    auto end = std::to_chars(digits, digits + sizeof digits, bits, 16).ptr;
    out += '_' + std::string(digits, end);
    return;
  }
  const std::string text(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  out += text;
  if (text.find_first_of(".en") == std::string::npos) out += ".0";
}

void print(std::string& out, const std::string& value) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  out += '"';
}

template <class T>
void print(std::string& out, const std::vector<T>& list) {
  if (list.empty() && std::is_same_v<T, double>) out += "reals";
  if (list.empty() && std::is_same_v<T, std::string>) out += "strings";
  out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ", ";
    print(out, list[i]);
  }
  out += ']';
}

struct Parser {
  std::string_view& text;

  void skip_spaces() {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (!text.starts_with(token)) return false;
    text.remove_prefix(token.size());
    return true;
  }
  Error fail(const std::string& expected) const {
    const std::string found =
        text.empty() ? "the end" : "'" + std::string(text.substr(0, 20)) + "'";
    return {ErrorCode::kInvalidArgument,
            "parse operation: found " + found + ", expected " + expected};
  }

  Result<std::string> name() {
    skip_spaces();
    size_t size = 0;
    while (size < text.size() && is_name_char(text[size])) ++size;
    if (size == 0) return fail("a name");
    std::string result(text.substr(0, size));
    text.remove_prefix(size);
    return result;
  }

  Result<std::string> string() {
    if (!accept("\"")) return fail("a string in double quotes");
    std::string result;
    while (!text.empty() && text.front() != '"') {
      if (text.front() != '\\') {
        result += text.front();
        text.remove_prefix(1);
      } else if (text.size() >= 2 && (text[1] == '"' || text[1] == '\\')) {
        result += text[1];
        text.remove_prefix(2);
      } else {
        uint8_t byte = 0;
        if (text.size() < 4 || text[1] != 'x' ||
            std::from_chars(text.data() + 2, text.data() + 4, byte, 16).ptr != text.data() + 4) {
          return fail("an escape: \\\", \\\\ or \\xNN");
        }
        result += static_cast<char>(byte);
        text.remove_prefix(4);
      }
    }
    if (!accept("\"")) return fail("a closing double quote");
    return result;
  }

  Result<AttributeValue> nan() {
    uint64_t bits = kPlainNan;
    if (text.starts_with("_")) {
      const auto [end, error] =
          std::from_chars(text.data() + 1, text.data() + text.size(), bits, 16);
      if (error != std::errc() || !std::isnan(std::bit_cast<double>(bits))) {
        return fail("the bits of a nan in hexadecimal");
      }
      text.remove_prefix(static_cast<size_t>(end - text.data()));
    }
    return AttributeValue(std::bit_cast<double>(bits));
  }

  Result<AttributeValue> number() {
    skip_spaces();
    if (accept("nan")) return nan();
    if (accept("inf")) return AttributeValue(std::numeric_limits<double>::infinity());
    if (accept("-inf")) return AttributeValue(-std::numeric_limits<double>::infinity());
    const char* end = text.data() + text.size();
    int64_t integer = 0;
    const auto whole = std::from_chars(text.data(), end, integer);
    double real = 0;
    const auto any = std::from_chars(text.data(), end, real);
    const bool is_real = any.ec == std::errc() && any.ptr > whole.ptr;
    if (!is_real && whole.ec != std::errc()) return fail("a number in range");
    text.remove_prefix(static_cast<size_t>((is_real ? any.ptr : whole.ptr) - text.data()));
    if (is_real) return AttributeValue(real);
    return AttributeValue(integer);
  }

  template <class T>
  Result<AttributeValue> rest_of_list(std::vector<T> list) {
    while (!accept("]")) {
      if (!list.empty() && !accept(",")) return fail("',' or ']'");
      KILN_ASSIGN_OR_RETURN(AttributeValue item, scalar());
      T* typed = std::get_if<T>(&item);
      if (typed == nullptr) return fail("list items of one type");
      list.push_back(std::move(*typed));
    }
    return AttributeValue(std::move(list));
  }

  Result<AttributeValue> list() {
    if (accept("]")) return AttributeValue(std::vector<int64_t>{});
    KILN_ASSIGN_OR_RETURN(AttributeValue first, scalar());
    if (auto* integer = std::get_if<int64_t>(&first)) {
      return rest_of_list(std::vector<int64_t>{*integer});
    }
    if (auto* real = std::get_if<double>(&first)) return rest_of_list(std::vector<double>{*real});
    return rest_of_list(std::vector<std::string>{std::get<std::string>(first)});
  }

  Result<AttributeValue> scalar() {
    skip_spaces();
    if (!text.starts_with("\"")) return number();
    KILN_ASSIGN_OR_RETURN(std::string value, string());
    return AttributeValue(std::move(value));
  }

  Result<AttributeValue> value() {
    if (accept("reals[]")) return AttributeValue(std::vector<double>{});
    if (accept("strings[]")) return AttributeValue(std::vector<std::string>{});
    if (accept("[")) return list();
    return scalar();
  }
};

}  // namespace

std::string to_text(const Operation& operation) {
  std::string out = operation.name;
  if (operation.attributes.empty()) return out;
  const char* separator = "{";
  for (const auto& [key, value] : operation.attributes) {
    out += separator + key + "=";
    std::visit([&](const auto& typed) { print(out, typed); }, value);
    separator = ", ";
  }
  return out + "}";
}

Result<Operation> parse_operation(std::string_view& text) {
  Parser parser{text};
  Operation operation;
  KILN_ASSIGN_OR_RETURN(operation.name, parser.name());
  if (!text.starts_with("{")) return operation;
  parser.accept("{");
  while (!parser.accept("}")) {
    if (!operation.attributes.empty() && !parser.accept(",")) return parser.fail("',' or '}'");
    KILN_ASSIGN_OR_RETURN(const std::string key, parser.name());
    if (!parser.accept("=")) return parser.fail("'=' after attribute '" + key + "'");
    KILN_ASSIGN_OR_RETURN(AttributeValue value, parser.value());
    if (operation.find(key)) return parser.fail("attribute '" + key + "' only once");
    operation.set(key, std::move(value));
  }
  return operation;
}

}  // namespace kiln
