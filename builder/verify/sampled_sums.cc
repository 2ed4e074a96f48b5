#include "builder/verify/sampled_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace kiln {
namespace {

constexpr int64_t kSamples = 64;

// The last place of 1, the least step and the largest number of a dtype.
struct Rounding {
  double relative, least, largest;
};
Rounding rounding_of(DType dtype) {
  if (dtype == DType::kF16) return {0x1p-10, 0x1p-24, 65504};
  if (dtype == DType::kBF16) return {0x1p-7, 0x1p-133, 0x1.FEp127};
  return {0x1p-23, 0x1p-149, 0x1.FFFFFEp127};
}

double f16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa == 0 ? sign * HUGE_VAL : NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

double e4m3_value(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  if ((bits & 0x7F) == 0x7F) return NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, -9);
  return sign * std::ldexp(8 + mantissa, exponent - 10);
}

struct Values {
  DType dtype;
  const void* data;

  double at(int64_t i) const {
    if (dtype == DType::kF32) return static_cast<const float*>(data)[i];
    if (dtype == DType::kF8E4M3FN) return e4m3_value(static_cast<const uint8_t*>(data)[i]);
    const uint16_t bits = static_cast<const uint16_t*>(data)[i];
    if (dtype == DType::kF16) return f16_value(bits);
    const uint32_t wide = uint32_t{bits} << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};

struct Sum {
  double value = 0, magnitude = 0;  // of the terms: what cancels leaves their rounding
  void add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
};

Shape coordinates(int64_t i, const Shape& shape) {
  Shape at(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) at[axis] = i % shape[axis];
  return at;
}
int64_t index_of(const Shape& at, const Shape& shape) {
  int64_t i = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) i = i * shape[axis] + at[axis];
  return i;
}

class Samples {
 public:
  Samples(const Operation& operation, std::span<const TensorType> types,
          std::span<const void* const> inputs)
      : operation_(operation), a_shape_(types[0].shape), b_shape_(types[1].shape) {
    for (size_t i = 0; i < types.size(); ++i) values_.push_back({types[i].dtype, inputs[i]});
  }

  Sum sum_at(const Shape& at) const {
    if (operation_.name == "matmul") return matmul(at);
    Sum sum;
    if (values_.size() > 2) sum.add(values_[2].at(at[1]));
    operation_.name == "conv" ? convolve(at, sum) : convolve_transposed(at, sum);
    return sum;
  }

 private:
  // An operand's leading axes broadcast to the result's.
  static Shape matrix_at(const Shape& at, const Shape& operand, int64_t row, int64_t column) {
    Shape place(operand.size());
    const size_t missing = at.size() - operand.size();
    for (size_t i = 0; i + 2 < operand.size(); ++i) {
      place[i] = operand[i] == 1 ? 0 : at[i + missing];
    }
    place[operand.size() - 2] = row;
    place[operand.size() - 1] = column;
    return place;
  }

  Sum matmul(const Shape& at) const {
    const bool turned_a = operation_.get_int("transpose_a", 0) != 0;
    const bool turned_b = operation_.get_int("transpose_b", 0) != 0;
    const int64_t row = at[at.size() - 2], column = at[at.size() - 1];
    const int64_t depth = a_shape_[a_shape_.size() - (turned_a ? 2 : 1)];
    const int64_t a = turned_a ? index_of(matrix_at(at, a_shape_, 0, row), a_shape_)
                               : index_of(matrix_at(at, a_shape_, row, 0), a_shape_);
    const int64_t b = turned_b ? index_of(matrix_at(at, b_shape_, column, 0), b_shape_)
                               : index_of(matrix_at(at, b_shape_, 0, column), b_shape_);
    Sum sum;
    add_products({a, turned_a ? a_shape_.back() : 1}, {b, turned_b ? 1 : b_shape_.back()}, depth,
                 sum);
    return sum;
  }

  // Adds `count` products of elements that lie `step` apart in each operand.
  struct Strided {
    int64_t first, step;
  };
  void add_products(const Strided& a, const Strided& b, int64_t count, Sum& sum) const {
    for (int64_t i = 0; i < count; ++i) {
      sum.add(values_[0].at(a.first + i * a.step) * values_[1].at(b.first + i * b.step));
    }
  }

  static int64_t attribute(const std::vector<int64_t>& values, size_t axis, int64_t otherwise) {
    return axis < values.size() ? values[axis] : otherwise;
  }

  // Calls visit(x, w) for each pair of places in the spatial axes that meet in result `at`.
  template <class Visit>
  void each_tap(const Shape& at, bool transposed, const Visit& visit) const {
    const auto strides = operation_.get_ints("strides"), pads = operation_.get_ints("pads_begin"),
               dilations = operation_.get_ints("dilations");
    const Shape window(b_shape_.begin() + 2, b_shape_.end());
    const int64_t taps = element_count(window);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const Shape w = coordinates(tap, window);
      Shape x(window.size());
      bool inside = true;
      for (size_t axis = 0; axis < window.size() && inside; ++axis) {
        const int64_t stride = attribute(strides, axis, 1), out = at[axis + 2];
        const int64_t reach = w[axis] * attribute(dilations, axis, 1) - attribute(pads, axis, 0);
        inside = !transposed || (out - reach) % stride == 0;
        x[axis] = transposed ? (out - reach) / stride : out * stride + reach;
        inside =
            inside && x[axis] >= 0 && x[axis] < a_shape_[axis + 2] && (!transposed || out >= reach);
      }
      if (inside) visit(x, w);
    }
  }

  // The sum over a window's places, at each over the channels: x's begin at `first_in`, w's at
  // `w_first` (its two leading axes) and lie along its axis `w_axis`.
  void convolve(const Shape& at, bool transposed, int64_t first_in, int64_t channels,
                const Shape& w_first, size_t w_axis, Sum& sum) const {
    const int64_t places = element_count(Shape(a_shape_.begin() + 2, a_shape_.end()));
    const int64_t taps = element_count(Shape(b_shape_.begin() + 2, b_shape_.end()));
    const int64_t w_step = w_axis == 0 ? b_shape_[1] * taps : taps;
    each_tap(at, transposed, [&](const Shape& x, const Shape& w) {
      Shape x_at = {at[0], first_in}, w_at = w_first;
      x_at.insert(x_at.end(), x.begin(), x.end());
      w_at.insert(w_at.end(), w.begin(), w.end());
      add_products({index_of(x_at, a_shape_), places}, {index_of(w_at, b_shape_), w_step}, channels,
                   sum);
    });
  }

  // x [N, C, ...], w [M, C / groups, ...]
  void convolve(const Shape& at, Sum& sum) const {
    const int64_t groups = operation_.get_int("groups", 1);
    const int64_t group = at[1] / (b_shape_[0] / groups), channels = b_shape_[1];
    convolve(at, false, group * channels, channels, {at[1], 0}, 1, sum);
  }

  // x [N, C, ...], w [C, M / groups, ...]
  void convolve_transposed(const Shape& at, Sum& sum) const {
    const int64_t groups = operation_.get_int("groups", 1);
    const int64_t group = at[1] / b_shape_[1], channels = b_shape_[0] / groups;
    convolve(at, true, group * channels, channels, {group * channels, at[1] % b_shape_[1]}, 0, sum);
  }

  const Operation& operation_;
  const Shape &a_shape_, &b_shape_;
  std::vector<Values> values_;
};

bool agrees(double got, const Sum& sum, const Rounding& rounding) {
  if (std::isnan(sum.value) || std::isnan(got)) return std::isnan(sum.value) && std::isnan(got);
  if (std::isinf(sum.value)) return got == sum.value;
  if (std::isinf(got)) {
    const bool beyond = std::abs(sum.value) >= rounding.largest * (1 - rounding.relative);
    return beyond && std::signbit(got) == std::signbit(sum.value);
  }
  return std::abs(got - sum.value) <=
         rounding.relative * std::abs(sum.value) + rounding.least + 0x1p-40 * sum.magnitude;
}

}  // namespace

Result<> check_sampled_sums(const Operation& operation, std::span<const TensorType> types,
                            std::span<const void* const> inputs, const TensorType& result_type,
                            const void* result) {
  const Samples samples(operation, types, inputs);
  const Values values{result_type.dtype, result};
  const int64_t elements = result_type.elements(), count = std::min(elements, kSamples);
  for (int64_t i = 0; i < count; ++i) {
    // One of each of `count` equal parts, not always in the same column; the very last.
    const int64_t first = i * elements / count, end = (i + 1) * elements / count;
    const auto spread = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u;
    const int64_t element =
        end == elements ? elements - 1
                        : first + static_cast<int64_t>(spread % static_cast<uint64_t>(end - first));
    const Sum sum = samples.sum_at(coordinates(element, result_type.shape));
    const double got = values.at(element);
    if (agrees(got, sum, rounding_of(result_type.dtype))) continue;
    return Error{ErrorCode::kVerification,
                 "the reference's " + operation.name + " of " + to_string(types[0]) + " and " +
                     to_string(types[1]) + ": element " + std::to_string(element) + " is " +
                     std::to_string(got) + " on the GPU, the host's f64 sum is " +
                     std::to_string(sum.value) + "; the GPU or its driver computes wrong values"};
  }
  return Ok();
}

}  // namespace kiln
