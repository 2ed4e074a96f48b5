#include "apps/engine-run/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kiln::run {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Doubles {
  std::span<const double> found, expected;
};

bool equal_or_both_nan(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

Shape index_of(int64_t element, const Shape& shape) {
  Shape index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return index;
}

// An element's error as a multiple of what it may be: above 1 is wrong.
double excess(double found, double expected, const Tolerance& tolerance) {
  if (equal_or_both_nan(found, expected)) return 0;
  const double error = std::fabs(found - expected);
  const double allowed = tolerance.atol + tolerance.rtol * std::fabs(expected);
  if (!std::isfinite(found) || !std::isfinite(expected) || allowed == 0) return kInfinity;
  return error / allowed;
}

void compare_elements(const Doubles& values, const Tolerance& tolerance, Comparison& result) {
  double worst = -1;
  int64_t worst_element = 0;
  for (size_t i = 0; i < values.found.size(); ++i) {
    const double found = values.found[i], expected = values.expected[i];
    const double multiple = excess(found, expected, tolerance);
    result.wrong_elements += !(multiple <= 1);
    if (multiple > worst) {
      worst = multiple;
      worst_element = static_cast<int64_t>(i);
    }
    if (equal_or_both_nan(found, expected)) continue;
    const bool finite = std::isfinite(found) && std::isfinite(expected);
    const double error = finite ? std::fabs(found - expected) : kInfinity;
    result.max_abs_error = std::max(result.max_abs_error, error);
    result.max_rel_error =
        std::max(result.max_rel_error, finite ? error / std::fabs(expected) : kInfinity);
  }
  if (values.found.empty()) return;
  result.worst_index = index_of(worst_element, result.type.shape);
  result.worst_found = values.found[static_cast<size_t>(worst_element)];
  result.worst_expected = values.expected[static_cast<size_t>(worst_element)];
}

// 64-bit integers that differ by less than their doubles show. REQUIRES: of one type.
void compare_large_integers(const NamedArray& found, const NamedArray& expected,
                            const Doubles& values, Comparison& result) {
  for (size_t i = 0; i < values.found.size(); ++i) {
    int64_t a = 0, b = 0;
    std::memcpy(&a, found.bytes.data() + i * sizeof a, sizeof a);
    std::memcpy(&b, expected.bytes.data() + i * sizeof b, sizeof b);
    if (a == b || values.found[i] != values.expected[i]) continue;
    if (result.wrong_elements++ == 0) {
      result.worst_index = index_of(static_cast<int64_t>(i), result.type.shape);
      result.worst_found = result.worst_expected = values.found[i];
    }
    const auto apart = static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
    const double error = std::fabs(static_cast<double>(static_cast<int64_t>(apart)));
    result.max_abs_error = std::max(result.max_abs_error, error);
    result.max_rel_error = std::max(result.max_rel_error, error / std::fabs(values.expected[i]));
  }
}

double row_cosine(const Doubles& row) {
  double dot = 0, found = 0, expected = 0;
  for (size_t i = 0; i < row.found.size(); ++i) {
    const double a = row.found[i], b = row.expected[i];
    if (!std::isfinite(a) || !std::isfinite(b)) {
      if (!equal_or_both_nan(a, b)) return -1;
      continue;
    }
    dot += a * b;
    found += a * a;
    expected += b * b;
  }
  if (found == 0 || expected == 0) return found == expected ? 1 : 0;
  return dot / std::sqrt(found) / std::sqrt(expected);
}

void compare_rows(const Doubles& values, Comparison& result) {
  const Shape& shape = result.type.shape;
  if (values.found.empty()) return;
  const size_t rows = shape.size() < 2 ? 1 : static_cast<size_t>(shape[0]);
  const size_t length = values.found.size() / rows;
  for (size_t row = 0; row < rows; ++row) {
    const double cosine = row_cosine({values.found.subspan(row * length, length),
                                      values.expected.subspan(row * length, length)});
    if (cosine >= result.min_row_cosine) continue;
    result.min_row_cosine = cosine;
    result.worst_row = static_cast<int64_t>(row);
  }
}

}  // namespace

Result<Comparison> compare(const NamedArray& found, const NamedArray& expected,
                           const Tolerance& tolerance) {
  if (found.type.shape != expected.type.shape) {
    return Error{ErrorCode::kInvalidArgument,
                 "output '" + found.name + "' is " + to_string(found.type) +
                     ", but its reference is " + to_string(expected.type)};
  }
  KILN_ASSIGN_OR_RETURN(const auto found_values, to_doubles(found));
  KILN_ASSIGN_OR_RETURN(const auto expected_values, to_doubles(expected));
  Comparison result;
  result.name = found.name;
  result.type = found.type;
  result.elements = found.type.elements();
  const bool floats = is_float(found.type.dtype);
  const Tolerance exact{.elements = true, .rtol = 0, .atol = 0, .cosine = {}};
  const Tolerance& applied = floats ? tolerance : exact;
  compare_elements({found_values, expected_values}, applied, result);
  const bool large = found.type.dtype == DType::kI64 || found.type.dtype == DType::kU64;
  if (large && found.type == expected.type) {
    compare_large_integers(found, expected, {found_values, expected_values}, result);
  }
  compare_rows({found_values, expected_values}, result);
  result.passed = (!applied.elements || result.wrong_elements == 0) &&
                  (!applied.cosine || result.min_row_cosine >= *applied.cosine);
  return result;
}

Result<std::vector<Comparison>> compare_all(std::span<const NamedArray> found,
                                            std::span<const NamedArray> expected,
                                            const Tolerance& tolerance) {
  std::vector<Comparison> results;
  std::string missing;
  for (const NamedArray& output : found) {
    const auto reference = std::find_if(expected.begin(), expected.end(), [&](const auto& array) {
      return array.name == output.name;
    });
    if (reference == expected.end()) {
      missing += (missing.empty() ? "'" : ", '") + output.name + "'";
      continue;
    }
    KILN_ASSIGN_OR_RETURN(auto comparison, compare(output, *reference, tolerance));
    results.push_back(std::move(comparison));
  }
  if (missing.empty()) return results;
  std::string names;
  for (const NamedArray& array : expected)
    names += (names.empty() ? "'" : ", '") + array.name + "'";
  return Error{ErrorCode::kInvalidArgument, "the reference has no array for output " + missing +
                                                "; it holds " + (names.empty() ? "none" : names)};
}

}  // namespace kiln::run
