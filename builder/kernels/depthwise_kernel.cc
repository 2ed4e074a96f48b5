#include "builder/kernels/depthwise_kernel.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <string_view>

#include "builder/codegen/cuda/cuda_text.h"
#include "builder/kernels/constants_text.h"

namespace kiln {

std::string_view depthwise_template();

namespace {

constexpr int64_t kMostRegisters = 190;  // of a thread for sums and cells; 255 are all

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t threads_of(const DepthwiseShape& shape, const DepthwiseTiling& tiling) {
  return shape.batch * ceil_div(shape.out_height, tiling.band) *
         ceil_div(shape.out_width, tiling.run) * (shape.channels / kDepthwiseVector);
}

// Sums, and the cells of a line as floats.
int64_t registers_of(const DepthwiseShape& shape, const DepthwiseTiling& tiling) {
  const int64_t cells = (tiling.run - 1) * shape.stride_x + shape.window_x;
  return (tiling.run * tiling.band + cells) * kDepthwiseVector;
}

// Products of 64-bit extents would overflow before they could be compared.
bool is_below_2_30(std::initializer_list<int64_t> extents) {
  int64_t product = 1;
  for (int64_t extent : extents) {
    if (extent > (int64_t{1} << 30) / product) return false;
    product *= extent;
  }
  return true;
}

}  // namespace

std::string to_string(const DepthwiseTiling& tiling) {
  return "r" + std::to_string(tiling.run) + ".b" + std::to_string(tiling.band);
}

Result<> check_depthwise(const DepthwiseShape& shape) {
  if (shape.dtype != DType::kF16 && shape.dtype != DType::kBF16) {
    return refuse("the operands are " + std::string(to_string(shape.dtype)) +
                  ", f16 or bf16 expected");
  }
  for (int64_t extent : {shape.batch, shape.height, shape.width, shape.channels, shape.out_height,
                         shape.out_width, shape.window_y, shape.window_x}) {
    if (extent < 1) return refuse("an extent is 0");
  }
  if (shape.channels % kDepthwiseVector != 0) {
    return refuse(std::to_string(shape.channels) + " channels are no multiple of " +
                  std::to_string(kDepthwiseVector));
  }
  if (shape.pad_y < 0 || shape.pad_x < 0) return refuse("the padding is negative");
  if (!is_below_2_30({shape.batch, shape.height, shape.width, shape.channels}) ||
      !is_below_2_30({shape.batch, shape.out_height, shape.out_width, shape.channels}) ||
      !is_below_2_30({shape.window_y, shape.window_x, shape.channels}) ||
      !is_below_2_30({shape.out_height + shape.pad_y + 1, shape.stride_y}) ||
      !is_below_2_30({shape.out_width + shape.pad_x + 1, shape.stride_x})) {
    return refuse("there are over 2^30 elements");
  }
  if (registers_of(shape, {}) > kMostRegisters) {
    return refuse("a window of " + std::to_string(shape.window_x) + " columns is too wide");
  }
  return Ok();
}

std::vector<DepthwiseTiling> depthwise_tilings(const DepthwiseShape& shape,
                                               uint32_t multiprocessors) {
  // Widths of image networks are multiples of 7.
  constexpr DepthwiseTiling kSpread[] = {{7, 1}, {4, 2}, {4, 1}, {2, 2}, {2, 1}, {1, 1}};
  // A multiprocessor hides what it waits for with a few warps.
  const int64_t enough = int64_t{multiprocessors} * kDepthwiseThreads;
  std::vector<DepthwiseTiling> tilings;
  for (const DepthwiseTiling& tiling : kSpread) {
    if (tiling.run > shape.out_width || tiling.band > shape.out_height) continue;
    if (registers_of(shape, tiling) > kMostRegisters) continue;
    const bool finest = tiling.run == 1 && tiling.band == 1;
    if (threads_of(shape, tiling) < enough && !finest) continue;
    tilings.push_back(tiling);
  }
  return tilings;
}

int64_t depthwise_blocks(const DepthwiseShape& shape, const DepthwiseTiling& tiling) {
  return ceil_div(threads_of(shape, tiling), kDepthwiseThreads);
}

std::string depthwise_text(const DepthwiseShape& shape, const DepthwiseTiling& tiling,
                           const codegen::PointFunction& finish) {
  std::ostringstream text;
  text << "using Element = " << codegen::element_type(shape.dtype) << ";\n";
  write_number(text, "kBatch", shape.batch);
  write_number(text, "kHeight", shape.height);
  write_number(text, "kWidth", shape.width);
  write_number(text, "kChannels", shape.channels);
  write_number(text, "kOutHeight", shape.out_height);
  write_number(text, "kOutWidth", shape.out_width);
  write_number(text, "kWindowY", shape.window_y);
  write_number(text, "kWindowX", shape.window_x);
  write_number(text, "kStrideY", shape.stride_y);
  write_number(text, "kStrideX", shape.stride_x);
  write_number(text, "kPadY", shape.pad_y);
  write_number(text, "kPadX", shape.pad_x);
  write_number(text, "kRun", tiling.run);
  write_number(text, "kBand", tiling.band);
  write_number(text, "kThreads", kDepthwiseThreads);
  text << finish.text << depthwise_template() << "\nKILN_KERNEL(kThreads)\n"
       << "kiln_depthwise(const char* x, const char* w, " << finish.parameters << ") {\n"
       << "  depthwise(x, w, Operands{" << finish.arguments << "});\n}\n";
  return text.str();
}

}  // namespace kiln
