// What conv and conv_transpose share.
#pragma once
#include "engine/host/kernel.h"
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

}  // namespace kiln::host
