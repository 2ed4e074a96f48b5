// DFT, STFT, LRN, Det, MelWeightMatrix.
#include <algorithm>
#include <cmath>
#include <span>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

Result<ValueId> transform(NodeContext& c, ValueId x, int64_t axis, int64_t length, bool inverse,
                          bool onesided) {
  Operation op{"dft", {}};
  op.set("axis", axis)
      .set("length", length)
      .set("inverse", int64_t{inverse})
      .set("onesided", int64_t{onesided});
  const auto values = c.opaque(std::move(op), {x});
  if (values.empty()) return *c.error();
  return values[0];
}

// The axis is an attribute before opset 20, an input with another default from then on.
Outputs dft(NodeContext& c) {
  const ValueId x = c.input(0);
  const int64_t rank = c.rank(x);
  int64_t axis = c.get_int("axis", 1);
  if (c.opset() >= 20) axis = -2;
  if (c.opset() >= 20 && c.has(2)) {
    KILN_ASSIGN_OR_RETURN(axis, c.known_int(2, "axis"));
  }
  KILN_ASSIGN_OR_RETURN(axis, c.normalise_axis(axis, rank));
  const bool inverse = c.get_int("inverse", 0) != 0, onesided = c.get_int("onesided", 0) != 0;
  int64_t length = c.shape(x)[at(axis)];
  if (inverse && onesided) length = 2 * (length - 1);
  if (c.has(1)) {
    KILN_ASSIGN_OR_RETURN(length, c.known_int(1, "dft_length"));
  }
  KILN_ASSIGN_OR_RETURN(const ValueId y, transform(c, x, axis, length, inverse, onesided));
  return one(y);
}

// Frames are gathered from the signal [B, L, 1 or 2], weighed by the window and transformed.
Outputs stft(NodeContext& c) {
  const TensorType signal = c.input_type(0);
  if (signal.rank() != 3 && signal.rank() != 2) {
    return c.fail("signal is " + to_string(signal) + ", expected [batch, length, 1 or 2]");
  }
  const ValueId x = signal.rank() == 3 ? c.input(0) : c.unsqueeze(c.input(0), {2});
  KILN_ASSIGN_OR_RETURN(const int64_t step, c.known_int(1, "frame_step"));
  int64_t length = c.has(2) ? c.input_type(2).elements() : 0;
  if (c.has(3)) {
    KILN_ASSIGN_OR_RETURN(length, c.known_int(3, "frame_length"));
  }
  if (step < 1 || length < 1 || length > signal.shape[1]) {
    return c.fail("frame_step is " + std::to_string(step) + " and frame_length " +
                  std::to_string(length) + " for a signal of " + to_string(signal));
  }
  const int64_t frames = (signal.shape[1] - length) / step + 1;
  std::vector<int64_t> positions;
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t i = 0; i < length; ++i) positions.push_back(f * step + i);
  }
  ValueId framed = c.gather(x, c.reshape(c.ints(positions), {frames, length}), 1);
  if (c.has(2)) framed = c.mul(framed, c.reshape(c.input(2), {1, 1, length, 1}));
  const bool onesided = c.get_int("onesided", 1) != 0 && c.shape(x)[2] == 1;
  KILN_ASSIGN_OR_RETURN(const ValueId y, transform(c, framed, 2, length, false, onesided));
  return one(y);
}

// x / (bias + alpha / size * sum of squares over `size` channels around it) ^ beta.
Outputs lrn(NodeContext& c) {
  const ValueId x = c.input(0);
  const TensorType in = c.type(x);
  const int64_t size = c.get_int("size", 0);
  if (in.rank() < 2 || size < 1 || size > 4096) {
    return c.fail("input is " + to_string(in) + " and size " + std::to_string(size) +
                  ", expected rank 2 or more and a size of 1 to 4096");
  }
  const DType wide = compute_dtype(in.dtype);
  const ValueId value = c.cast(x, wide);
  std::vector<int64_t> before(in.shape.size()), after(in.shape.size());
  before[1] = (size - 1) / 2;
  after[1] = size - 1 - before[1];
  const ValueId squares = c.pad(c.mul(value, value), before, after, c.scalar(0, wide));
  ValueId sum = c.slice_axis(squares, 1, 0, in.shape[1]);
  for (int64_t i = 1; i < size; ++i) sum = c.add(sum, c.slice_axis(squares, 1, i, in.shape[1]));
  const double alpha = c.get_float("alpha", 1e-4) / static_cast<double>(size);
  const ValueId base =
      c.add(c.scalar(c.get_float("bias", 1), wide), c.mul(c.scalar(alpha, wide), sum));
  const ValueId power = c.apply(ScalarFn::kPow, {base, c.scalar(c.get_float("beta", 0.75), wide)});
  return one(c.cast(c.div(value, power), in.dtype));
}

Outputs det(NodeContext& c) { return c.opaque(Operation{"det", {}}, {c.input(0)}); }

// Triangular filters between points that are equally far apart on the mel scale.
Outputs mel_weight_matrix(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const int64_t bins, c.known_int(0, "num_mel_bins"));
  KILN_ASSIGN_OR_RETURN(const int64_t length, c.known_int(1, "dft_length"));
  KILN_ASSIGN_OR_RETURN(const int64_t rate, c.known_int(2, "sample_rate"));
  KILN_ASSIGN_OR_RETURN(const auto low, c.known_floats(3, "lower_edge_hertz"));
  KILN_ASSIGN_OR_RETURN(const auto high, c.known_floats(4, "upper_edge_hertz"));
  constexpr int64_t kMost = 1 << 20;
  if (bins < 1 || bins > 4096 || length < 1 || length > kMost || rate < 1 || low.size() != 1 ||
      high.size() != 1) {
    return c.fail("num_mel_bins, dft_length or sample_rate is out of range");
  }
  const int64_t rows = length / 2 + 1;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(low[0]), pitch = (mel(high[0]) - first) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (first + pitch * static_cast<double>(i)) / 2595) - 1);
    const double edge = std::floor(static_cast<double>(length + 1) * hertz / double(rate));
    if (!(edge >= 0 && edge <= double(rows))) return c.fail("an edge is above the Nyquist rate");
    edges.push_back(static_cast<int64_t>(edge));
  }
  std::vector<float> weights(at(rows * bins));
  for (int64_t b = 0; b < bins; ++b) {
    const int64_t left = edges[at(b)], middle = edges[at(b + 1)], right = edges[at(b + 2)];
    for (int64_t r = left; r <= std::min(right, rows) && r < rows; ++r) {
      float& weight = weights[at(r * bins + b)];
      if (r <= middle)
        weight = middle == left ? 1.0F : float(r - left) / float(middle - left);
      else if (r < right)
        weight = float(right - r) / float(right - middle);
    }
  }
  const auto span = std::as_bytes(std::span(weights));
  std::vector<std::byte> bytes(span.begin(), span.end());
  const ValueId matrix =
      c.constant({DType::kF32, {rows, bins}}, SharedBytes::take(std::move(bytes)));
  return one(c.cast(matrix, c.get_dtype("output_datatype", DType::kF32)));
}

constexpr Handler kHandlers[] = {
    {"", "DFT", dft},   {"", "Det", det},
    {"", "LRN", lrn},   {"", "MelWeightMatrix", mel_weight_matrix},
    {"", "STFT", stft},
};

}  // namespace

std::span<const Handler> signal_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
