// conv_transpose: x [N, C, spatial...], w [C, M/groups, kernel...], optional bias [M]. Every input
// point adds its window to the output: a matrix product yields the windows, which are then added up
// in a fixed order.
#include <algorithm>

#include "engine/host/parallel.h"
#include "engine/host/plain/conv.h"
#include "engine/host/plain/gemm.h"
#include "engine/host/plain/kernels.h"

namespace kiln::host {
namespace {

// Adds what one tap of one output channel received from input points [point, point + count).
template <class T>
void add_tap(const ConvPlan& plan, const std::vector<int64_t>& tap, int64_t point, int64_t count,
             const T* from, T* y) {
  const Window& w = plan.window;
  Odometer in(plan.in);
  in.set(point);
  for (int64_t i = 0; i < count; ++i, in.next()) {
    int64_t to = 0;
    bool inside = true;
    for (size_t axis = 0; axis < w.rank(); ++axis) {
      const int64_t at =
          in.at()[axis] * w.strides[axis] + tap[axis] * w.dilations[axis] - w.begin[axis];
      inside &= at >= 0 && at < plan.out[axis];
      to = to * plan.out[axis] + at;
    }
    if (inside) y[to] = wrapping_add(y[to], from[i]);
  }
}

template <class T>
void convolve_image(const ConvPlan& plan, const T* x, const T* w, T* y, std::vector<T>& windows,
                    int64_t tile) {
  const int64_t taps = plan.window.taps(), height = plan.out_channels * taps;
  for (int64_t point = 0; point < plan.in_points; point += tile) {
    const int64_t count = std::min(tile, plan.in_points - point);
    std::fill(windows.begin(), windows.end(), T{0});
    // windows [M/groups * taps, count] = transposed weight times input.
    gemm<T>(height, count, plan.in_channels, {w, 1, height}, {x + point, plan.in_points, 1},
            {windows.data(), count, 1});
    for (int64_t m = 0; m < plan.out_channels; ++m) {
      Odometer tap(plan.window.kernel);
      for (int64_t t = 0; t < taps; ++t, tap.next()) {
        add_tap(plan, tap.at(), point, count, windows.data() + (m * taps + t) * count,
                y + m * plan.out_points);
      }
    }
  }
}

template <class T>
void convolve(const ConvPlan& plan, const T* x, const T* w, const T* bias, T* y) {
  const int64_t height = plan.out_channels * plan.window.taps();
  const int64_t tile = std::min<int64_t>(plan.in_points, 1024);
  const int64_t cost = height * plan.in_channels * plan.in_points;
  parallel_for(plan.batch * plan.groups, cost, [&](int64_t begin, int64_t end) {
    std::vector<T> windows(height * tile);
    for (int64_t image = begin; image < end; ++image) {
      const int64_t group = image % plan.groups;
      T* to = y + image * plan.out_channels * plan.out_points;
      start_from_bias(plan, bias, group, plan.out_points, to);
      convolve_image(plan, x + image * plan.in_channels * plan.in_points,
                     w + group * plan.in_channels * height, to, windows, tile);
    }
  });
}

}  // namespace

Result<Types> infer_conv_transpose(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(check_conv(o, in));
  KILN_ASSIGN_OR_RETURN(const Window window, conv_window(o, in));
  const Shape &x = in[0].shape, &w = in[1].shape;
  KILN_ASSIGN_OR_RETURN(const int64_t groups, int_attribute(o, "groups", 1, kMaxAmount));
  KILN_ASSIGN_OR_RETURN(const auto extra,
                        ints_attribute(o, "output_padding", in[0].rank() - 2, 0, kMaxAmount));
  if (x[1] != w[0] || x[1] % groups != 0 || w[1] > kMaxAmount) {
    return reject(o, "input is " + to_string(in[0]) + " and weight " + to_string(in[1]) + " with " +
                         std::to_string(groups) +
                         " groups, expected a weight of [C, M/groups, ...]");
  }
  const int64_t channels = w[1] * groups;
  if (in.size() == 3) KILN_RETURN_IF_ERROR(expect_shape(o, in, 2, {channels}));
  TensorType out{in[0].dtype, {x[0], channels}};
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t extent = (x[i + 2] - 1) * window.strides[i] + window.span(i) + extra[i] -
                           window.begin[i] - window.end[i];
    if (extent < 0 || extent > int64_t{1} << 40) {
      return reject(o, "spatial axis " + std::to_string(i) + " of the result would have extent " +
                           std::to_string(extent));
    }
    out.shape.push_back(extent);
  }
  return results(o, {out});
}

Result<KernelPtr> prepare_conv_transpose(const Prepare& p) {
  return make_conv_kernel(p, []<class T>(const ConvPlan& plan, const T* x, const T* w,
                                         const T* bias, T* y) { convolve(plan, x, w, bias, y); });
}

}  // namespace kiln::host
