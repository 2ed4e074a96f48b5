#include "builder/verify/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "builder/verify/in_pieces.h"
#include "formats/narrow_floats.h"

namespace kiln {
namespace {

template <class Stored, class Convert>
void convert(const std::byte* data, size_t first, std::span<double> to, const Convert& convert) {
  const std::byte* from = data + first * sizeof(Stored);
  for (size_t i = 0; i < to.size(); ++i) {
    Stored value;
    std::memcpy(&value, from + i * sizeof(Stored), sizeof value);
    to[i] = convert(value);
  }
}

bool is_read_in_place(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// Elements of a tensor as doubles, a stretch at a time.
class Elements {
 public:
  Elements(const TensorType& type, const std::byte* data) : dtype_(type.dtype), data_(data) {
    if (is_read_in_place(dtype_)) return;
    converted_ = to_f64(type, data);
    dtype_ = DType::kF64;
    data_ = reinterpret_cast<const std::byte*>(converted_.data());
  }
  // The elements from `first` on.
  void read(size_t first, std::span<double> to) const {
    const auto same = [](auto value) { return static_cast<double>(value); };
    if (dtype_ == DType::kF64) return convert<double>(data_, first, to, same);
    if (dtype_ == DType::kF32) return convert<float>(data_, first, to, same);
    if (dtype_ == DType::kF16) return convert<uint16_t>(data_, first, to, f16_to_float);
    convert<uint16_t>(data_, first, to, bf16_to_float);
  }

 private:
  DType dtype_;
  const std::byte* data_;
  std::vector<double> converted_;  // of the types that are not read in place
};

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

// What is known of some rows: the result, and its worst element, the first of equals.
struct Findings {
  Comparison result;
  double over = 0;  // of the worst element
  size_t index = 0;
  double got = 0, want = 0, allowed = 0;

  // Adds those of later rows.
  void add(const Findings& other) {
    result.passed = result.passed && other.result.passed;
    result.max_abs_error = std::max(result.max_abs_error, other.result.max_abs_error);
    result.max_rel_error = std::max(result.max_rel_error, other.result.max_rel_error);
    result.min_cosine = std::min(result.min_cosine, other.result.min_cosine);
    if (other.over <= over) return;
    const Comparison kept = result;
    *this = other;
    result = kept;
  }
};

void compare_row(const Row& row, size_t first, const AccuracyPolicy& policy, Findings& findings) {
  if (std::memcmp(row.got, row.want, row.count * sizeof(double)) == 0) return;
  Comparison& result = findings.result;
  const double scale = row_scale(row);
  for (size_t i = 0; i < row.count; ++i) {
    const double got = row.got[i], want = row.want[i];
    if (got == want) continue;
    const double over = excess(got, want, scale, policy);
    if (std::isfinite(got) && std::isfinite(want)) {
      const double error = std::abs(got - want);
      result.max_abs_error = std::max(result.max_abs_error, error);
      result.max_rel_error =
          std::max(result.max_rel_error, error / std::max(std::abs(want), scale));
    }
    if (over > 1) result.passed = false;
    if (over <= findings.over) continue;
    findings.over = over;
    findings.index = first + i;
    findings.got = got;
    findings.want = want;
    findings.allowed = allowed_error(want, scale, policy);
  }
  result.min_cosine = std::min(result.min_cosine, cosine(row));
}

// Rows [begin, end) of that length each, converted some at a time.
Findings compare_rows(const Elements& got, const Elements& want, int64_t begin, int64_t end,
                      size_t length, const AccuracyPolicy& policy) {
  constexpr size_t kElements = 4096;
  const auto some = static_cast<int64_t>(std::max<size_t>(1, kElements / length));
  std::vector<double> a, b;
  Findings findings;
  for (int64_t row = begin; row < end; row += some) {
    const size_t rows = static_cast<size_t>(std::min(some, end - row));
    const size_t first = static_cast<size_t>(row) * length;
    a.resize(rows * length);
    b.resize(rows * length);
    got.read(first, a);
    want.read(first, b);
    for (size_t i = 0; i < rows; ++i) {
      compare_row({a.data() + i * length, b.data() + i * length, length}, first + i * length,
                  policy, findings);
    }
  }
  return findings;
}

}  // namespace

std::string describe_element(size_t index, double got, double want, double allowed) {
  char text[160];
  std::snprintf(text, sizeof text, "element %zu is %.9g, expected %.9g within %.3g", index, got,
                want, allowed);
  return text;
}

std::vector<double> to_f64(const TensorType& type, const std::byte* data) {
  std::vector<double> values(static_cast<size_t>(type.elements()), std::nan(""));
  if (is_read_in_place(type.dtype)) {
    Elements(type, data).read(0, values);
    return values;
  }
  const auto bytes = std::span(data, static_cast<size_t>(type.bytes()));
  const HostTensor tensor{type, {nullptr, bytes}};
  const TensorType wide{DType::kF64, type.shape};
  auto cast = run_reference_op(ir::Cast{DType::kF64}, std::span(&tensor, 1), std::span(&wide, 1));
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
  const auto count = static_cast<size_t>(type.elements());
  if (count == 0) return {};
  const size_t length = type.shape.empty() ? count : static_cast<size_t>(type.shape.back());
  const auto rows = static_cast<int64_t>(count / length);
  const Elements a(type, got), b(type, want);
  const int64_t pieces = std::min(pieces_of(static_cast<int64_t>(count)), rows);
  std::vector<Findings> parts(static_cast<size_t>(pieces));
  in_pieces(pieces, [&](int64_t i) {
    parts[static_cast<size_t>(i)] =
        compare_rows(a, b, rows * i / pieces, rows * (i + 1) / pieces, length, policy);
  });
  Findings findings = std::move(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) findings.add(parts[i]);
  Comparison result = std::move(findings.result);
  result.rows = rows;
  if (findings.over > 0) {
    result.worst = describe_element(findings.index, findings.got, findings.want, findings.allowed);
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
