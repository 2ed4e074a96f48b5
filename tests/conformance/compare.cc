#include "tests/conformance/compare.h"

#include <cmath>
#include <cstring>
#include <sstream>

#include "builder/import/onnx/constants.h"

namespace kiln::conformance {
namespace {

// Two units in the last place, which right answers of a narrow type may be apart: ONNX's expected
// values round every step of a composite operator to that type.
double narrow_slack(DType dtype, double expected) {
  const int mantissa_bits = dtype == DType::kBF16 ? 7 : dtype == DType::kF16 ? 10 : 0;
  if (mantissa_bits == 0 || expected == 0 || !std::isfinite(expected)) return 0;
  return std::ldexp(2, std::ilogb(expected) - mantissa_bits);
}

bool agree(double found, double expected, const Tolerance& tolerance) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (std::isinf(found) || std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

template <class T, class Agree>
std::string first_difference(const std::vector<T>& found, const std::vector<T>& expected,
                             Agree same) {
  size_t count = 0, first = 0;
  for (size_t i = found.size(); i-- > 0;) {
    if (same(found[i], expected[i])) continue;
    ++count;
    first = i;
  }
  if (count == 0) return "";
  std::ostringstream text;
  text.precision(9);
  text << count << " of " << found.size() << " elements differ; element " << first << " is "
       << found[first] << ", expected " << expected[first];
  return text.str();
}

}  // namespace

std::string difference(const HostTensor& found, const onnx::Tensor& expected,
                       const Tolerance& tolerance) {
  if (found.type != expected.type) {
    return "the type is " + to_string(found.type) + ", expected " + to_string(expected.type);
  }
  const HostTensor wanted{expected.type, expected.data};
  if (!is_float(found.type.dtype)) {
    return first_difference(onnx_import::to_ints(found), onnx_import::to_ints(wanted),
                            [](int64_t a, int64_t b) { return a == b; });
  }
  return first_difference(onnx_import::to_doubles(found), onnx_import::to_doubles(wanted),
                          [&](double a, double b) {
                            Tolerance widened = tolerance;
                            if (tolerance.relative > 0)
                              widened.absolute += narrow_slack(found.type.dtype, b);
                            return agree(a, b, widened);
                          });
}

}  // namespace kiln::conformance
