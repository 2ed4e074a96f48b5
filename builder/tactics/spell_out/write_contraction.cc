// Products and convolutions for types that no library takes: every term at once, then one sum.
#include <algorithm>
#include <optional>

#include "builder/tactics/spell_out/operation_formulas.h"

namespace kiln {
namespace {

using ir::ValueId;

constexpr int64_t kMostTaps = 128;

// Sums of narrow floats are f32.
DType sum_type(DType dtype) { return is_float(dtype) && bits_of(dtype) < 32 ? DType::kF32 : dtype; }

ValueId swapped(Formula& f, ValueId x) {
  const auto rank = f.type(x).rank();
  ir::Transpose transpose;
  for (int64_t a = 0; a < rank; ++a) transpose.perm.push_back(a);
  std::swap(transpose.perm[static_cast<size_t>(rank) - 1],
            transpose.perm[static_cast<size_t>(rank) - 2]);
  return f.emit(std::move(transpose), {x});
}

ValueId with_axis(Formula& f, ValueId x, size_t from_end) {
  Shape shape = f.type(x).shape;
  shape.insert(shape.end() - static_cast<int64_t>(from_end), 1);
  return f.reshape(x, shape);
}

// Adds cells of 0 to the spatial axes; negative pads cut off.
ValueId padded(Formula& f, ValueId x, const ir::Conv& op) {
  const size_t rank = f.type(x).shape.size();
  ir::Pad pad{Shape(rank, 0), Shape(rank, 0)};
  for (size_t s = 0; s < op.strides.size(); ++s) {
    const int64_t cut = std::max<int64_t>(0, -op.pads_begin[s]);
    const int64_t size = f.type(x).shape[s + 2] - cut - std::max<int64_t>(0, -op.pads_end[s]);
    if (size < 0) f.refuse("a padding that cuts off more than there is");
    if (f.error()) return x;
    x = f.slice(x, s + 2, cut, size);
    pad.before[s + 2] = std::max<int64_t>(0, op.pads_begin[s]);
    pad.after[s + 2] = std::max<int64_t>(0, op.pads_end[s]);
  }
  if (pad.before == Shape(rank, 0) && pad.after == Shape(rank, 0)) return x;
  return f.emit(std::move(pad), {x, f.number(f.type(x).dtype, 0)});
}

// x [N, C, spatial...], w [groups, M / groups, C / groups, kernel...]; spatial extents `out`.
ValueId convolved(Formula& f, ValueId x, ValueId w, const ir::Conv& op, const Shape& out) {
  const size_t spatial = out.size();
  const Shape kernel(f.type(w).shape.begin() + 3, f.type(w).shape.end());
  x = padded(f, x, op);
  if (f.error()) return x;
  Shape grouped = f.type(x).shape;
  grouped.insert(grouped.begin() + 1, {op.groups, 1});
  grouped[3] /= op.groups;
  x = f.reshape(x, grouped);
  Shape weights = f.type(w).shape;
  weights.insert(weights.begin(), 1);
  w = f.reshape(w, weights);
  ValueId sum{};
  for (int64_t tap = 0; tap < element_count(kernel); ++tap) {
    ValueId cells = x, weight = w;
    int64_t rest = tap;
    for (size_t s = spatial; s-- > 0; rest /= kernel[s]) {
      const int64_t at = rest % kernel[s];
      cells = f.slice(cells, s + 4, at * op.dilations[s], out[s], op.strides[s]);
      weight = f.slice(weight, s + 4, at, 1);
    }
    const ValueId product = f.apply(ScalarFn::kMul, {cells, weight});
    sum = tap == 0 ? product : f.apply(ScalarFn::kAdd, {sum, product});
  }
  return f.reduce(ReduceFn::kSum, 3, sum);
}

// The convolution's result as the node's: channels joined, bias added, in its type.
ValueId finished(Formula& f, ValueId sum, const Values& in, const TensorType& out) {
  ValueId y = f.reshape(sum, out.shape);
  if (in.size() > 2) {
    Shape bias(out.shape.size(), 1);
    bias[1] = out.shape[1];
    y = f.apply(ScalarFn::kAdd, {y, f.reshape(f.cast(in[2], f.type(y).dtype), bias)});
  }
  return f.cast(y, out.dtype);
}

// False: refused.
bool takes(Formula& f, const Shape& kernel, const TensorType& out) {
  const int64_t taps = element_count({kernel.begin() + 2, kernel.end()});
  if (out.elements() == 0 || element_count(kernel) == 0) {
    f.refuse("a convolution of nothing");
  } else if (taps > kMostTaps) {
    f.refuse("a kernel of " + std::to_string(taps) + " cells");
  }
  return !f.error();
}

// Elements [start, start + size) of a spatial axis, 0 where there are none; nullopt: all are 0.
std::optional<ValueId> window(Formula& f, ValueId x, size_t axis, int64_t start, int64_t size) {
  const Shape& shape = f.type(x).shape;
  const int64_t low = std::max<int64_t>(start, 0), high = std::min(start + size, shape[axis]);
  if (high <= low) return std::nullopt;
  ir::Pad pad{Shape(shape.size(), 0), Shape(shape.size(), 0)};
  pad.before[axis] = low - start;
  pad.after[axis] = start + size - high;
  const ValueId inside = f.slice(x, axis, low, high - low);
  if (high - low == size) return inside;
  return f.emit(std::move(pad), {inside, f.number(f.type(x).dtype, 0)});
}

// A deconvolution's results at every stride-th place from `phase` on, one entry a spatial axis:
// some of the kernel's cells meet the input there, at distances that are whole numbers of strides.
struct Phases {
  const ir::ConvTranspose& op;
  Shape kernel, steps;  // spatial extents; steps: results of one phase

  // x [N, groups, 1, C / groups, spatial...], w [1, groups, M / groups, C / groups, kernel...].
  ValueId results(Formula& f, ValueId x, ValueId w, const Shape& phase) const {
    std::optional<ValueId> sum;
    for (int64_t tap = 0; tap < element_count(kernel); ++tap) {
      const auto term = product(f, x, w, phase, tap);
      if (term) sum = sum ? f.apply(ScalarFn::kAdd, {*sum, *term}) : *term;
    }
    if (sum) return *sum;
    Shape shape = f.type(x).shape;
    shape[2] = f.type(w).shape[2];
    std::copy(steps.begin(), steps.end(), shape.begin() + 4);
    return f.emit(ir::Broadcast{shape}, {f.number(f.type(x).dtype, 0)});
  }

 private:
  std::optional<ValueId> product(Formula& f, ValueId x, ValueId w, const Shape& phase,
                                 int64_t tap) const {
    std::optional<ValueId> cells = x;
    for (size_t s = kernel.size(); s-- > 0; tap /= kernel[s]) {
      const int64_t at = tap % kernel[s];
      const int64_t reach = phase[s] + op.pads_begin[s] - at * op.dilations[s];
      if (reach % op.strides[s] != 0) return std::nullopt;
      if (cells) cells = window(f, *cells, s + 4, reach / op.strides[s], steps[s]);
      w = f.slice(w, s + 4, at, 1);
    }
    if (!cells) return std::nullopt;
    return f.apply(ScalarFn::kMul, {*cells, w});
  }
};

// All phases of an axis and of those after it, put between each other.
ValueId interleaved(Formula& f, ValueId x, ValueId w, const Phases& phases, Shape& phase,
                    const Shape& out) {
  const size_t s = phase.size();
  if (s == out.size()) return phases.results(f, x, w, phase);
  const size_t axis = s + 4;
  std::vector<ValueId> parts;
  for (int64_t p = 0; p < phases.op.strides[s]; ++p) {
    phase.push_back(p);
    const ValueId part = interleaved(f, x, w, phases, phase, out);
    phase.pop_back();
    Shape apart = f.type(part).shape;
    apart.insert(apart.begin() + static_cast<int64_t>(axis) + 1, 1);
    parts.push_back(f.reshape(part, apart));
  }
  Shape joined = f.type(parts[0]).shape;
  joined.erase(joined.begin() + static_cast<int64_t>(axis) + 1);
  joined[axis] *= phases.op.strides[s];
  const ValueId all =
      parts.size() == 1 ? parts[0] : f.emit(ir::Concat{static_cast<int64_t>(axis) + 1}, parts);
  return f.slice(f.reshape(all, joined), axis, 0, out[s]);
}

}  // namespace

Values write_matmul(Formula& f, const ir::MatMul& op, const Values& in, const TensorType& out) {
  if (out.elements() == 0) {
    f.refuse("a product of nothing");
    return {};
  }
  const DType wide = sum_type(out.dtype);
  ValueId a = f.cast(in[0], wide), b = f.cast(in[1], wide);
  if (op.transpose_a) a = swapped(f, a);
  if (!op.transpose_b) b = swapped(f, b);
  const ValueId terms = f.apply(ScalarFn::kMul, {with_axis(f, a, 1), with_axis(f, b, 2)});
  const auto last = f.type(terms).rank() - 1;
  return {f.cast(f.reshape(f.reduce(ReduceFn::kSum, last, terms), out.shape), out.dtype)};
}

Values write_conv(Formula& f, const ir::Conv& op, const Values& in, const TensorType& out) {
  const Shape kernel = f.type(in[1]).shape;
  if (!takes(f, kernel, out)) return {};
  const DType wide = sum_type(out.dtype);
  Shape split = kernel;
  split[0] /= op.groups;
  split.insert(split.begin(), op.groups);
  const ValueId sum = convolved(f, f.cast(in[0], wide), f.reshape(f.cast(in[1], wide), split), op,
                                {out.shape.begin() + 2, out.shape.end()});
  return {finished(f, sum, in, out)};
}

Values write_conv_transpose(Formula& f, const ir::ConvTranspose& op, const Values& in,
                            const TensorType& out) {
  const Shape kernel = f.type(in[1]).shape;
  if (!takes(f, kernel, out)) return {};
  if (element_count(op.strides) > kMostTaps) {
    f.refuse("a deconvolution of " + std::to_string(element_count(op.strides)) + " phases");
    return {};
  }
  const DType wide = sum_type(out.dtype);
  Shape cells = f.type(in[0]).shape, weights = kernel;
  cells.insert(cells.begin() + 1, {op.groups, 1});
  cells[3] /= op.groups;
  weights[0] /= op.groups;
  weights.insert(weights.begin(), {1, op.groups});
  ir::Transpose channels{{0, 1, 3, 2}};
  for (int64_t a = 4; a < static_cast<int64_t>(weights.size()); ++a) channels.perm.push_back(a);
  const ValueId x = f.reshape(f.cast(in[0], wide), cells);
  const ValueId w = f.emit(channels, {f.reshape(f.cast(in[1], wide), weights)});
  const Shape spatial(out.shape.begin() + 2, out.shape.end());
  Phases phases{op, {kernel.begin() + 2, kernel.end()}, {}};
  for (size_t s = 0; s < spatial.size(); ++s) {
    phases.steps.push_back((spatial[s] + op.strides[s] - 1) / op.strides[s]);
  }
  Shape phase;
  const ValueId terms = interleaved(f, x, w, phases, phase, spatial);
  return {finished(f, f.reduce(ReduceFn::kSum, 3, terms), in, out)};
}

}  // namespace kiln
