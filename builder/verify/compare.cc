#include "builder/verify/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace kiln {
namespace {

std::vector<double> f32_to_f64(const TensorType& type, const std::byte* data) {
  std::vector<float> floats(static_cast<size_t>(type.elements()));
  if (!floats.empty()) std::memcpy(floats.data(), data, floats.size() * sizeof(float));
  return {floats.begin(), floats.end()};
}

struct Row {
  const double* got;
  const double* want;
  size_t count;
};

double row_scale(const Row& row) {
  double sum = 0;
  size_t finite = 0;
  for (size_t i = 0; i < row.count; ++i) {
    if (!std::isfinite(row.want[i])) continue;
    sum += row.want[i] * row.want[i];
    ++finite;
  }
  return finite == 0 ? 1.0 : std::max(1.0, std::sqrt(sum / static_cast<double>(finite)));
}

double cosine(const Row& row) {
  double dot = 0, a = 0, b = 0;
  for (size_t i = 0; i < row.count; ++i) {
    if (!std::isfinite(row.got[i]) || !std::isfinite(row.want[i])) continue;
    dot += row.got[i] * row.want[i];
    a += row.got[i] * row.got[i];
    b += row.want[i] * row.want[i];
  }
  if (a == 0 && b == 0) return 1;
  return a == 0 || b == 0 ? 0 : dot / std::sqrt(a * b);
}

double allowed_error(double want, double scale, const AccuracyPolicy& policy) {
  return policy.atol * scale + policy.rtol * std::abs(want) + policy.noise;
}

std::string describe(size_t index, double got, double want, double allowed) {
  char text[160];
  std::snprintf(text, sizeof text, "element %zu is %.9g, expected %.9g within %.3g", index, got,
                want, allowed);
  return text;
}

bool same_special(double got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  return got == want;  // infinities
}

// How far element i is over its allowance: > 1 fails.
double excess(double got, double want, double scale, const AccuracyPolicy& policy) {
  if (got == want) return 0;
  if (!std::isfinite(want) || !std::isfinite(got)) return same_special(got, want) ? 0 : HUGE_VAL;
  const double allowed = allowed_error(want, scale, policy);
  return allowed == 0 ? HUGE_VAL : std::abs(got - want) / allowed;
}

void compare_row(const Row& row, size_t first, const AccuracyPolicy& policy, double& worst,
                 Comparison& result) {
  const double scale = row_scale(row);
  for (size_t i = 0; i < row.count; ++i) {
    const double got = row.got[i], want = row.want[i];
    const double over = excess(got, want, scale, policy);
    if (std::isfinite(got) && std::isfinite(want)) {
      const double error = std::abs(got - want);
      result.max_abs_error = std::max(result.max_abs_error, error);
      result.max_rel_error =
          std::max(result.max_rel_error, error / std::max(std::abs(want), scale));
    }
    if (over > 1) result.passed = false;
    if (over <= worst) continue;
    worst = over;
    result.worst = describe(first + i, got, want, allowed_error(want, scale, policy));
  }
  result.min_cosine = std::min(result.min_cosine, cosine(row));
}

}  // namespace

std::vector<double> to_f64(const TensorType& type, const std::byte* data) {
  if (type.dtype == DType::kF32) return f32_to_f64(type, data);
  const auto bytes = std::span(data, static_cast<size_t>(type.bytes()));
  const HostTensor tensor{type, {nullptr, bytes}};
  const TensorType wide{DType::kF64, type.shape};
  auto cast = run_reference_op(ir::Cast{DType::kF64}, std::span(&tensor, 1), std::span(&wide, 1));
  std::vector<double> values(static_cast<size_t>(type.elements()), std::nan(""));
  if (cast.ok() && !values.empty()) {
    std::memcpy(values.data(), cast->front().bytes.data(), values.size() * sizeof(double));
  }
  return values;
}

double cosine_of(const HostTensor& got, const HostTensor& want) {
  const auto a = to_f64(got.type, got.bytes.data()), b = to_f64(want.type, want.bytes.data());
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      if (!same_special(a[i], b[i])) return 0;
      continue;
    }
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  if (aa == 0 && bb == 0) return 1;
  return aa == 0 || bb == 0 ? 0 : dot / std::sqrt(aa * bb);
}

Comparison compare(const TensorType& type, const std::byte* got, const std::byte* want,
                   const AccuracyPolicy& policy) {
  Comparison result;
  const auto count = static_cast<size_t>(type.elements());
  const size_t row_length =
      type.shape.empty() || count == 0 ? count : static_cast<size_t>(type.shape.back());
  if (count == 0) return result;
  const auto a = to_f64(type, got), b = to_f64(type, want);
  double worst = 0;
  for (size_t first = 0; first < count; first += std::max<size_t>(row_length, 1)) {
    compare_row({a.data() + first, b.data() + first, row_length}, first, policy, worst, result);
    ++result.rows;
  }
  if (!is_float(type.dtype)) {
    const auto bytes = static_cast<size_t>(type.bytes());
    const bool equal = std::memcmp(got, want, bytes) == 0;
    if (!equal && result.passed) result.worst = "integers differ in their low bits";
    result.passed = equal;
  }
  return result;
}

}  // namespace kiln
