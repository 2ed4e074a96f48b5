// The text of kernels/depthwise.cuh for one problem and tiling.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "builder/codegen/cuda/point_function.h"
#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln {

// x [batch, height, width, channels] with a window of each channel's own: w [window_y, window_x,
// channels] gives [batch, out_height, out_width, channels], all dense.
struct DepthwiseShape {
  DType dtype = DType::kF16;  // of x and w: f16 or bf16; sums are in f32
  int64_t batch = 1, height = 1, width = 1, channels = 8;
  int64_t out_height = 1, out_width = 1;
  int64_t window_y = 1, window_x = 1;
  int64_t stride_y = 1, stride_x = 1;
  int64_t pad_y = 0, pad_x = 0;  // in front
};

// Results that a thread makes, for 8 channels each.
struct DepthwiseTiling {
  int64_t run = 1;   // of a row
  int64_t band = 1;  // rows
};
// "r7.b2"
std::string to_string(const DepthwiseTiling& tiling);

constexpr int64_t kDepthwiseThreads = 128;  // of a block
constexpr int64_t kDepthwiseVector = 8;     // elements that finish() takes at a time

// The one-line reason why the kernel cannot do it.
Result<> check_depthwise(const DepthwiseShape& shape);

// A few tilings that suit it and a GPU of so many multiprocessors, the likeliest first.
// REQUIRES: check_depthwise(shape) was ok.
std::vector<DepthwiseTiling> depthwise_tilings(const DepthwiseShape& shape,
                                               uint32_t multiprocessors);

int64_t depthwise_blocks(const DepthwiseShape& shape, const DepthwiseTiling& tiling);

// Entry "kiln_depthwise" with the parameters x, w, then those of `finish`, a function of
// kDepthwiseVector elements. To be compiled behind device_prelude(). Buffers begin on 16-byte
// boundaries.
std::string depthwise_text(const DepthwiseShape& shape, const DepthwiseTiling& tiling,
                           const codegen::PointFunction& finish);

}  // namespace kiln
