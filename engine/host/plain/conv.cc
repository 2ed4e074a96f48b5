// conv: x [N, C, spatial...], w [M, C/groups, kernel...], optional bias [M]. The input is unrolled
// tile by tile into a matrix whose columns are output points; then it is a matrix product.
#include "engine/host/plain/conv.h"

#include <algorithm>

#include "engine/host/parallel.h"
#include "engine/host/plain/gemm.h"
#include "engine/host/plain/kernels.h"

namespace kiln::host {

Result<Window> conv_window(const Operation& o, InputTypes in) {
  const int64_t rank = in[0].rank() - 2;
  Window window;
  window.kernel.assign(in[1].shape.begin() + 2, in[1].shape.end());
  KILN_ASSIGN_OR_RETURN(window.strides, ints_attribute(o, "strides", rank, 1, kMaxAmount));
  KILN_ASSIGN_OR_RETURN(window.dilations, ints_attribute(o, "dilations", rank, 1, kMaxAmount));
  KILN_ASSIGN_OR_RETURN(window.begin,
                        ints_attribute(o, "pads_begin", rank, -kMaxAmount, kMaxAmount));
  KILN_ASSIGN_OR_RETURN(window.end, ints_attribute(o, "pads_end", rank, -kMaxAmount, kMaxAmount));
  return window;
}

Result<> check_conv(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 2, 3));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 3, 8));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 1, in[0].rank(), in[0].rank()));
  for (size_t i = 1; i < in.size(); ++i) {
    KILN_RETURN_IF_ERROR(expect_dtype(o, in, i, in[0].dtype));
  }
  for (size_t i = 0; i < 2; ++i) {
    for (size_t axis = 2; axis < in[i].shape.size(); ++axis) {
      const int64_t extent = in[i].shape[axis];
      if (extent > kMaxAmount || (i == 1 && extent < 1)) {
        return reject(o, "input " + std::to_string(i) + " is " + to_string(in[i]) +
                             ", its spatial extents must be 1 to " + std::to_string(kMaxAmount));
      }
    }
  }
  return Ok();
}

ConvPlan make_conv_plan(const Prepare& p) {
  const TensorType &x = p.inputs[0].type, &w = p.inputs[1].type, &y = p.outputs[0];
  ConvPlan plan{};
  plan.window = *conv_window(p.operation, Types{x, w});
  plan.batch = x.shape[0];
  plan.groups = p.operation.get_int("groups", 1);
  plan.in_channels = x.shape[1] / plan.groups;
  plan.out_channels = y.shape[1] / plan.groups;
  plan.in.assign(x.shape.begin() + 2, x.shape.end());
  plan.out.assign(y.shape.begin() + 2, y.shape.end());
  plan.in_points = element_count(plan.in);
  plan.out_points = element_count(plan.out);
  plan.bias = p.inputs.size() == 3;
  return plan;
}

namespace {

constexpr int64_t kTile = 512;  // output points of one piece of work

// Whether the columns are the input itself.
bool is_pointwise(const ConvPlan& plan) {
  const Window& w = plan.window;
  bool result = true;
  for (size_t i = 0; i < w.rank(); ++i) {
    result &= w.kernel[i] == 1 && w.strides[i] == 1 && w.begin[i] == 0 && w.end[i] == 0;
  }
  return result;
}

// Input cells that one tap sees for `count` output points from `point` on; zero in the padding.
template <class T>
void unroll_tap(const ConvPlan& plan, const T* x, const std::vector<int64_t>& tap, int64_t point,
                int64_t count, T* to) {
  const Window& w = plan.window;
  const size_t last = w.rank() - 1;
  Odometer out(plan.out);
  for (int64_t done = 0; done < count;) {
    out.set(point + done);
    const int64_t run = std::min(plan.out[last] - out.at()[last], count - done);
    int64_t row = 0;
    bool inside = true;
    for (size_t i = 0; i < last; ++i) {
      const int64_t at = out.at()[i] * w.strides[i] + tap[i] * w.dilations[i] - w.begin[i];
      inside &= at >= 0 && at < plan.in[i];
      row = row * plan.in[i] + at;
    }
    const int64_t extent = plan.in[last], stride = w.strides[last];
    int64_t at = out.at()[last] * stride + tap[last] * w.dilations[last] - w.begin[last];
    // [first, end) of the run lies inside of the row.
    const int64_t first =
        inside ? std::clamp<int64_t>(at >= 0 ? 0 : (-at + stride - 1) / stride, 0, run) : run;
    const int64_t end =
        inside && at < extent ? std::clamp((extent - 1 - at) / stride + 1, first, run) : first;
    T* piece = to + done;
    std::fill_n(piece, first, T{0});
    if (end > first) {
      const T* from = x + row * extent + at;
      if (stride == 1)
        std::copy(from + first, from + end, piece + first);
      else
        for (int64_t i = first; i < end; ++i) piece[i] = from[i * stride];
    }
    std::fill(piece + end, piece + run, T{0});
    done += run;
  }
}

template <class T>
void unroll(const ConvPlan& plan, const T* x, int64_t point, int64_t count, T* to) {
  Odometer tap(plan.window.kernel);
  const int64_t taps = plan.window.taps();
  for (int64_t t = 0; t < taps; ++t, tap.next()) {
    for (int64_t c = 0; c < plan.in_channels; ++c) {
      unroll_tap(plan, x + c * plan.in_points, tap.at(), point, count, to + (c * taps + t) * count);
    }
  }
}

// One channel in, a few out: too thin for a matrix product to pay.
template <class T>
void depthwise(const ConvPlan& plan, const T* x, const T* w, int64_t point, int64_t count, T* y) {
  T column[kTile];
  Odometer tap(plan.window.kernel);
  const int64_t taps = plan.window.taps();
  for (int64_t t = 0; t < taps; ++t, tap.next()) {
    unroll_tap(plan, x, tap.at(), point, count, column);
    for (int64_t m = 0; m < plan.out_channels; ++m) {
      const T weight = w[m * taps + t];
      T* to = y + m * plan.out_points;
      for (int64_t i = 0; i < count; ++i) {
        to[i] = wrapping_add(to[i], wrapping_mul(weight, column[i]));
      }
    }
  }
}

template <class T>
void convolve(const ConvPlan& plan, const T* x, const T* w, const T* bias, T* y) {
  const int64_t tiles = (plan.out_points + kTile - 1) / kTile;
  const int64_t depth = plan.in_channels * plan.window.taps();
  const bool pointwise = is_pointwise(plan);
  const int64_t cost = plan.out_channels * depth * std::min(kTile, plan.out_points);
  parallel_for(plan.batch * plan.groups * tiles, cost, [&](int64_t begin, int64_t end) {
    const bool thin = plan.in_channels == 1 && plan.out_channels <= 4;
    std::vector<T> columns(pointwise || thin ? 0 : depth * std::min(kTile, plan.out_points));
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / tiles, group = image % plan.groups;  // image: one group's
      const int64_t point = item % tiles * kTile, count = std::min(kTile, plan.out_points - point);
      const T* from = x + image * plan.in_channels * plan.in_points;
      const T* weight = w + group * plan.out_channels * depth;
      T* to = y + image * plan.out_channels * plan.out_points + point;
      start_from_bias(plan, bias, group, count, to);
      if (thin) {
        depthwise(plan, from, weight, point, count, to);
        continue;
      }
      if (!pointwise) unroll(plan, from, point, count, columns.data());
      const Matrix<const T> right = pointwise ? Matrix<const T>{from + point, plan.in_points, 1}
                                              : Matrix<const T>{columns.data(), count, 1};
      gemm<T>(plan.out_channels, count, depth, {weight, depth, 1}, right, {to, plan.out_points, 1});
    }
  });
}

}  // namespace

Result<Types> infer_conv(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(check_conv(o, in));
  KILN_ASSIGN_OR_RETURN(const Window window, conv_window(o, in));
  const Shape &x = in[0].shape, &w = in[1].shape;
  KILN_ASSIGN_OR_RETURN(const int64_t groups, int_attribute(o, "groups", 1, kMaxAmount));
  if (w[0] % groups != 0 || x[1] % groups != 0 || x[1] / groups != w[1]) {
    return reject(o, "input is " + to_string(in[0]) + " and weight " + to_string(in[1]) + " with " +
                         std::to_string(groups) +
                         " groups, expected a weight of [M, C/groups, ...]");
  }
  if (in.size() == 3) KILN_RETURN_IF_ERROR(expect_shape(o, in, 2, {w[0]}));
  TensorType out{in[0].dtype, {x[0], w[0]}};
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t room = x[i + 2] + window.begin[i] + window.end[i] - window.span(i);
    if (room < 0) {
      return reject(o, "the kernel " + to_string(window.kernel) +
                           " is larger than the padded input " + to_string(in[0]));
    }
    out.shape.push_back(room / window.strides[i] + 1);
  }
  return results(o, {out});
}

Result<KernelPtr> prepare_conv(const Prepare& p) {
  return make_conv_kernel(p, []<class T>(const ConvPlan& plan, const T* x, const T* w,
                                         const T* bias, T* y) { convolve(plan, x, w, bias, y); });
}

}  // namespace kiln::host
