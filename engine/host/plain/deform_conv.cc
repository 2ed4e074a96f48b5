// deform_conv: x [N, C, H, W], w [M, C/groups, kh, kw], offset [N, og*kh*kw*2, h, w] (y, x), bias
// [M], mask [N, og*kh*kw, h, w] with og offset groups: a convolution whose taps are moved by the
// offsets and weighed by the mask.
#include <algorithm>

#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/bilinear.h"
#include "engine/host/plain/conv.h"
#include "engine/host/plain/gemm.h"
#include "engine/host/plain/kernels.h"

namespace kiln::host {
namespace {

struct Plan {
  Window window;
  int64_t batch, channels, height, width, out_channels, out_height, out_width;
  int64_t groups, offset_groups;
};

// Row (channel, tap) of the matrix whose columns are the output points.
template <class T>
void unroll(const Plan& p, const T* x, const T* offset, const T* mask, T* columns) {
  const int64_t taps = p.window.taps(), points = p.out_height * p.out_width;
  const int64_t shared = p.channels / p.offset_groups;
  for (int64_t row = 0; row < p.channels * taps; ++row) {
    const int64_t c = row / taps, tap = row % taps, at = c / shared * taps + tap;
    const int64_t ky = tap / p.window.kernel[1] * p.window.dilations[0] - p.window.begin[0];
    const int64_t kx = tap % p.window.kernel[1] * p.window.dilations[1] - p.window.begin[1];
    for (int64_t i = 0; i < points; ++i) {
      const double y = static_cast<double>(i / p.out_width * p.window.strides[0] + ky) +
                       static_cast<double>(offset[2 * at * points + i]);
      const double xx = static_cast<double>(i % p.out_width * p.window.strides[1] + kx) +
                        static_cast<double>(offset[(2 * at + 1) * points + i]);
      columns[row * points + i] =
          static_cast<T>(static_cast<double>(mask[at * points + i]) *
                         read_bilinear_zero(x + c * p.height * p.width, p.height, p.width, y, xx));
    }
  }
}

template <class T>
void convolve(const Plan& p, Inputs in, T* y) {
  const int64_t points = p.out_height * p.out_width, taps = p.window.taps();
  const int64_t depth = p.channels / p.groups * taps, rows = p.out_channels / p.groups;
  parallel_for(p.batch, p.channels * taps * points * 16, [&](int64_t begin, int64_t end) {
    std::vector<T> columns(p.channels * taps * points);
    for (int64_t n = begin; n < end; ++n) {
      unroll<T>(p, input<T>(in, 0) + n * p.channels * p.height * p.width,
                input<T>(in, 2) + n * p.offset_groups * taps * 2 * points,
                input<T>(in, 4) + n * p.offset_groups * taps * points, columns.data());
      T* to = y + n * p.out_channels * points;
      for (int64_t m = 0; m < p.out_channels; ++m) {
        std::fill_n(to + m * points, points, input<T>(in, 3)[m]);
      }
      for (int64_t g = 0; g < p.groups; ++g) {
        gemm<T>(rows, points, depth, {input<T>(in, 1) + g * rows * depth, depth, 1},
                {columns.data() + g * depth * points, points, 1},
                {to + g * rows * points, points, 1});
      }
    }
  });
}

}  // namespace

Result<Types> infer_deform_conv(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 5));
  KILN_RETURN_IF_ERROR(expect_float(o, in, 0));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 4, 4));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 1, 4, 4));
  KILN_ASSIGN_OR_RETURN(const int64_t og, int_attribute(o, "offset_group", 1, kMaxAmount));
  KILN_ASSIGN_OR_RETURN(const Types out, infer_conv(o, in.first(2)));
  const Shape &y = out[0].shape, &w = in[1].shape;
  if (in[0].shape[1] % og != 0) {
    return reject(o, "attribute 'offset_group' is " + std::to_string(og) +
                         ", expected a divisor of " + std::to_string(in[0].shape[1]) + " channels");
  }
  const int64_t taps = og * w[2] * w[3];
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 2, {y[0], taps * 2, y[2], y[3]}));
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 3, {y[1]}));
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 4, {y[0], taps, y[2], y[3]}));
  for (size_t i = 1; i < 5; ++i) KILN_RETURN_IF_ERROR(expect_dtype(o, in, i, in[0].dtype));
  return out;
}

Result<KernelPtr> prepare_deform_conv(const Prepare& p) {
  const Types types{p.inputs[0].type, p.inputs[1].type};
  const Shape &x = types[0].shape, &y = p.outputs[0].shape;
  const Plan plan{*conv_window(p.operation, types),
                  x[0],
                  x[1],
                  x[2],
                  x[3],
                  y[1],
                  y[2],
                  y[3],
                  p.operation.get_int("groups", 1),
                  p.operation.get_int("offset_group", 1)};
  if (p.outputs[0].elements() == 0) return make_kernel([](Inputs, Outputs) {});
  return visit_float(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel(
        [plan](Inputs in, Outputs out) { convolve<T>(plan, in, output<T>(out, 0)); });
  });
}

}  // namespace kiln::host
