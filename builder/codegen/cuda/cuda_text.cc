#include "builder/codegen/cuda/cuda_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::IndexMap;

std::string hex(uint64_t value) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

// The shortest decimal that reads back as the same value.
template <class F>
std::string float_literal(F value, std::string_view suffix) {
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + std::string(suffix);
}

std::string float_constant(DType dtype, uint64_t bits) {
  if (dtype == DType::kF32) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    return std::isfinite(value) ? float_literal(value, "f") : "float_of(" + hex(bits) + "u)";
  }
  if (dtype == DType::kF64) {
    const auto value = std::bit_cast<double>(bits);
    return std::isfinite(value) ? float_literal(value, "") : "double_of(" + hex(bits) + "ull)";
  }
  const uint64_t mask = (uint64_t{1} << bits_of(dtype)) - 1;
  return std::string(element_type(dtype)) + "::decode(" + hex(bits & mask) + "u)";
}

std::string integer_constant(DType dtype, uint64_t bits) {
  const int unused = 64 - bits_of(dtype);
  const uint64_t high = bits << unused;
  if (!is_signed_integer(dtype)) {
    return std::to_string(high >> unused) + (dtype == DType::kU64 ? "ull" : "u");
  }
  const int64_t value = static_cast<int64_t>(high) >> unused;
  // The lowest integer has no literal of its own.
  if (dtype == DType::kI64) {
    return value == INT64_MIN ? "(-9223372036854775807ll - 1)" : std::to_string(value) + "ll";
  }
  return value == INT32_MIN ? "(-2147483647 - 1)" : std::to_string(value);
}

std::string with_brackets(const std::string& text) {
  return text.starts_with('-') ? "(" + text + ")" : text;
}

}  // namespace

std::string_view element_type(DType dtype) {
  return dtype == DType::kBool ? "boolean" : to_string(dtype);
}

std::string_view register_type(DType dtype) {
  if (dtype == DType::kF64) return "double";
  if (is_float(dtype)) return "float";
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kI64:
      return "long long";
    case DType::kU64:
      return "unsigned long long";
    default:
      return is_signed_integer(dtype) ? "int" : "unsigned";
  }
}

std::string_view reduction_type(ReduceFn fn) {
  constexpr std::array<std::string_view, kReduceFnCount> kNames = {"Sum", "Prod", "Max",
                                                                   "Min", "Any",  "All"};
  return kNames[static_cast<size_t>(fn)];
}

std::string constant_text(DType dtype, uint64_t bits) {
  if (dtype == DType::kBool) return (bits & 0xFF) != 0 ? "true" : "false";
  if (is_float(dtype)) return float_constant(dtype, bits);
  return integer_constant(dtype, bits);
}

std::string scalar_text(const loop::LoopKernel& kernel, const Expr& expr, const ValueText& value) {
  const auto type_of = [&](size_t arg) {
    return std::string(element_type(kernel.exprs[expr.args[arg]].dtype));
  };
  if (expr.kind == Expr::Kind::kCast) {
    return "cast<" + type_of(0) + ", " + std::string(element_type(expr.dtype)) + ">(" +
           value(expr.args[0]) + (expr.saturate ? ")" : ", false)");
  }
  std::string text = "op_" + std::string(to_string(expr.fn)) + "<";
  text += type_of(expr.fn == ScalarFn::kWhere ? 1 : 0);
  if (expr.fn == ScalarFn::kPow) text += ", " + type_of(1);
  text += ">(";
  for (size_t a = 0; a < expr.args.size(); ++a) text += (a > 0 ? ", " : "") + value(expr.args[a]);
  return text + ")";
}

std::string IndexText::literal(int64_t value) const {
  return std::to_string(value) + (wide ? "ll" : "");
}

std::string IndexText::map(const IndexMap& map) const {
  const std::string unsigned_type = wide ? "(unsigned long long)" : "(unsigned)";
  const std::string suffix = wide ? "ull" : "u";
  std::string out;
  const auto add = [&](int64_t stride, const std::string& what) {
    if (!out.empty()) out += stride < 0 ? " - " : " + ";
    if (out.empty() && stride < 0) out += "-";
    if (stride != 1 && stride != -1) out += literal(stride < 0 ? -stride : stride) + " * ";
    out += what;
  };
  for (const loop::MapTerm& term : map.terms) {
    if (loop::term_extent(term, kernel) <= 1 || term.stride == 0) continue;
    const std::string index = dim(term.dim);
    const int64_t extent = kernel.dims[term.dim].extent;
    const int64_t quotients = (extent - 1) / term.divisor + 1;
    const bool divides = term.divisor != 1;
    const bool wraps = term.modulus != 0 && term.modulus < quotients;
    if (!divides && !wraps) {
      add(term.stride, index);
      continue;
    }
    std::string digit = unsigned_type + index;
    if (divides) digit += " / " + std::to_string(term.divisor) + suffix;
    if (wraps) digit += " % " + std::to_string(term.modulus) + suffix;
    add(term.stride, "(" + std::string(type()) + ")(" + digit + ")");
  }
  for (const loop::GatherTerm& gather : map.gathers) {
    add(gather.stride, "clamped<" + std::string(type()) + ">(" + value(gather.index) + ", " +
                           literal(gather.extent) + ")");
  }
  if (out.empty()) return literal(map.offset);
  if (map.offset > 0) out += " + " + literal(map.offset);
  if (map.offset < 0) out += " - " + literal(-map.offset);
  return out;
}

std::string IndexText::bounds(const std::vector<loop::Bound>& bounds) const {
  std::string out;
  const auto require = [&](const std::string& test) { out += (out.empty() ? "" : " && ") + test; };
  for (const loop::Bound& bound : bounds) {
    const auto range = loop::range_of(bound.map, kernel);
    const bool below = !range || range->low < bound.low;
    const bool above = !range || range->high >= bound.high;
    if (range && (range->high < bound.low || range->low >= bound.high)) return "false";
    if (!below && !above) continue;
    const std::string index = map(bound.map);
    if (below) require(index + " >= " + with_brackets(literal(bound.low)));
    if (above) require(index + " < " + with_brackets(literal(bound.high)));
  }
  return out;
}

}  // namespace kiln::codegen
