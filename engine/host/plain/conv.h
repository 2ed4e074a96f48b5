// What conv and conv_transpose share.
#pragma once
#include <algorithm>

#include "engine/host/kernel.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/plain/window.h"

namespace kiln::host {

struct ConvPlan {
  Window window;
  int64_t batch, groups, in_channels, out_channels;  // channels of one group
  Shape in, out;                                     // spatial extents
  int64_t in_points, out_points;                     // their products
  bool bias;
};

// The attributes of both operations. REQUIRES: inputs have rank >= 3.
Result<Window> conv_window(const Operation& operation, InputTypes inputs);
// Input, weight and optional bias have one dtype and one rank of 3 or more, with sane extents.
Result<> check_conv(const Operation& operation, InputTypes inputs);

// REQUIRES: the operation's infer accepted the types.
ConvPlan make_conv_plan(const Prepare& p);

// What the outputs of one group of one image start from. `bias`: of all channels, or null.
template <class T>
void start_from_bias(const ConvPlan& plan, const T* bias, int64_t group, int64_t count, T* y) {
  for (int64_t m = 0; m < plan.out_channels; ++m) {
    std::fill_n(y + m * plan.out_points, count, bias ? bias[group * plan.out_channels + m] : T{0});
  }
}

// The kernel that calls convolve(plan, x, w, bias, y), bias being null without one.
template <class Convolve>
Result<KernelPtr> make_conv_kernel(const Prepare& p, Convolve convolve) {
  if (p.outputs[0].dtype == DType::kBool) return unsupported(p.operation, "inputs are bool");
  if (p.outputs[0].elements() == 0) return make_kernel([](Inputs, Outputs) {});
  return visit_number(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan = make_conv_plan(p), convolve](Inputs in, Outputs out) {
      convolve(plan, input<T>(in, 0), input<T>(in, 1), plan.bias ? input<T>(in, 2) : nullptr,
               output<T>(out, 0));
    });
  });
}

}  // namespace kiln::host
