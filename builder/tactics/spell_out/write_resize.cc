// Resize: every axis on its own is a product with a matrix of few entries a row. The matrix is what
// the plain kernel makes of the unit vectors, so that no rule of coordinates is written twice.
#include <algorithm>

#include "builder/tactics/spell_out/operation_formulas.h"
#include "builder/verify/reference.h"

namespace kiln {
namespace {

using ir::ValueId;

constexpr int64_t kMostExtent = 2048;  // of an axis: the matrix is made in full
constexpr size_t kMostTaps = 16;

// One axis: result[o] = sum over t of weights[t][o] * x[places[t][o]].
struct Taps {
  std::vector<std::vector<int64_t>> places;
  std::vector<std::vector<float>> weights;
};

// The same operation on [in, in], its first axis kept.
Operation along_axis(const Operation& op, size_t axis, int64_t in, int64_t out) {
  Operation one = op;
  const auto scales = op.get_doubles("scales"), roi = op.get_doubles("roi");
  one.set("sizes", std::vector<int64_t>{in, out});
  one.set("scales", std::vector<double>{1.0, scales[axis]});
  if (!roi.empty()) {
    one.set("roi", std::vector<double>{0, roi[axis], 1, roi[axis + roi.size() / 2]});
  }
  return one;
}

Result<std::vector<float>> matrix_of(const Operation& op, int64_t in, int64_t out) {
  std::vector<float> unit(static_cast<size_t>(in * in));
  for (int64_t i = 0; i < in; ++i) unit[static_cast<size_t>(i * in + i)] = 1;
  const auto bytes = std::as_bytes(std::span(unit));
  const HostTensor x{{DType::kF32, {in, in}},
                     SharedBytes::take(std::vector<std::byte>(bytes.begin(), bytes.end()))};
  const TensorType type{DType::kF32, {in, out}};
  KILN_ASSIGN_OR_RETURN(const auto y,
                        run_reference_op(ir::Opaque{op}, std::span(&x, 1), std::span(&type, 1)));
  std::vector<float> matrix(static_cast<size_t>(in * out));
  std::memcpy(matrix.data(), y[0].bytes.data(), matrix.size() * sizeof(float));
  return matrix;
}

Taps taps_of(const std::vector<float>& matrix, int64_t in, int64_t out) {
  Taps taps;
  for (int64_t o = 0; o < out; ++o) {
    size_t t = 0;
    for (int64_t i = 0; i < in; ++i) {
      const float weight = matrix[static_cast<size_t>(i * out + o)];
      if (weight == 0) continue;
      if (t == taps.places.size()) {
        taps.places.emplace_back(static_cast<size_t>(out), 0);
        taps.weights.emplace_back(static_cast<size_t>(out), 0.0F);
      }
      taps.places[t][static_cast<size_t>(o)] = i;
      taps.weights[t][static_cast<size_t>(o)] = weight;
      ++t;
    }
  }
  return taps;
}

// Whether element o is x[o / factor].
bool repeats(const std::vector<int64_t>& places, int64_t in) {
  const auto out = static_cast<int64_t>(places.size());
  if (out % in != 0) return false;
  for (int64_t o = 0; o < out; ++o) {
    if (places[static_cast<size_t>(o)] != o / (out / in)) return false;
  }
  return true;
}

ValueId pick(Formula& f, ValueId x, size_t axis, const std::vector<int64_t>& places) {
  const Shape shape = f.type(x).shape;
  const auto out = static_cast<int64_t>(places.size());
  if (!repeats(places, shape[axis])) {
    const ValueId index = f.constant(DType::kI64, {out}, places);
    return f.emit(ir::Gather{static_cast<int64_t>(axis)}, {x, index});
  }
  Shape split = shape, wide = shape, joined = shape;
  split.insert(split.begin() + static_cast<int64_t>(axis) + 1, 1);
  wide.insert(wide.begin() + static_cast<int64_t>(axis) + 1, out / shape[axis]);
  joined[axis] = out;
  return f.reshape(f.emit(ir::Broadcast{wide}, {f.reshape(x, split)}), joined);
}

ValueId resized(Formula& f, ValueId x, size_t axis, const Taps& taps, bool copies) {
  if (copies) return pick(f, x, axis, taps.places[0]);
  Shape shape(f.type(x).shape.size(), 1);
  shape[axis] = static_cast<int64_t>(taps.places[0].size());
  ValueId sum{};
  for (size_t t = 0; t < taps.places.size(); ++t) {
    const ValueId weight = f.constant(DType::kF32, shape, taps.weights[t]);
    const ValueId part = f.apply(ScalarFn::kMul, {pick(f, x, axis, taps.places[t]), weight});
    sum = t == 0 ? part : f.apply(ScalarFn::kAdd, {sum, part});
  }
  return sum;
}

}  // namespace

Values write_resize(Formula& f, const Operation& op, const Values& in, const TensorType& out) {
  const TensorType type = f.type(in[0]);
  const bool copies = op.get_string("mode", "") == "nearest";
  ValueId x = copies ? in[0] : f.cast(in[0], DType::kF32);
  if (op.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    f.refuse("a resize that crops fills what lies outside");
  }
  if (!copies && (!is_float(type.dtype) || type.dtype == DType::kF64)) {
    f.refuse("a resize that weighs " + std::string(to_string(type.dtype)));
  }
  for (size_t axis = 0; axis < type.shape.size() && !f.error(); ++axis) {
    const int64_t from = type.shape[axis], to = out.shape[axis];
    const bool scaled = op.get_doubles("scales")[axis] != 1;
    if (from == to && !scaled) continue;
    if (from < 1 || to < 1 || from > kMostExtent || to > 8 * kMostExtent) {
      f.refuse("a resize of " + std::to_string(from) + " to " + std::to_string(to) + " elements");
      break;
    }
    const auto matrix = matrix_of(along_axis(op, axis, from, to), from, to);
    if (!matrix.ok()) {
      f.refuse(matrix.error().message);
      break;
    }
    const Taps taps = taps_of(*matrix, from, to);
    if (taps.places.empty() || taps.places.size() > kMostTaps) {
      f.refuse("a resize weighs " + std::to_string(taps.places.size()) + " elements for one");
      break;
    }
    x = resized(f, x, axis, taps, copies);
  }
  return {f.cast(x, type.dtype)};
}

}  // namespace kiln
