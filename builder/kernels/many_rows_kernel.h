// The text of kernels/many_rows*.cuh for one problem and tiling.
//
// Source of the design (a producer warp, two groups of warps in turns, clusters that share copies):
// CUTLASS's ping-pong kernels for compute capability 9.0.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "builder/codegen/cuda/point_function.h"
#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln {

// x [rows, depth] times the transpose of w [halves * columns, depth], both dense; the result is
// [rows, columns].
struct ManyRowsShape {
  DType dtype = DType::kBF16;  // of x and w: f16, bf16 or f8e4m3fn; sums are in f32
  int64_t rows = 1, columns = 1, depth = 1;
  bool constant_weights = true;  // no kernel writes w
  int64_t halves = 1;            // 2: both halves of a row of the product meet in the results
  DType result = DType::kBF16;   // a float of 8, 16 or 32 bits
};

struct ManyRowsTiling {
  int64_t blocks = 2;  // of 64 rows of a tile
  int64_t columns = 128;
  int64_t ring = 5;                               // stages of 128 bytes of a row
  int64_t cluster_rows = 1, cluster_columns = 1;  // tiles side by side that share their copies
  int64_t splits = 1;                             // blocks that share the depth of a tile
  // Of f8e4m3fn: sums of a stage are added up in f32, as the tensor cores would do with fewer bits.
  bool in_steps = false;
};
// "128x128.r5.c2x1", "64x128.r6.k4", "64x128.r8.c1x1.steps"
std::string to_string(const ManyRowsTiling& tiling);

// The one-line reason why the kernel cannot do it.
Result<> check_many_rows(const ManyRowsShape& shape, uint32_t compute_capability);

std::span<const ManyRowsTiling> all_many_rows_tilings();
// Whether there is a text of it for the shape.
bool takes(const ManyRowsTiling& tiling, const ManyRowsShape& shape);

// At most 4 tilings that suit it and the GPU, the likeliest first; of f8e4m3fn at most 5, of which
// one or more add up in steps. REQUIRES: check_many_rows(shape) was ok.
std::vector<ManyRowsTiling> many_rows_tilings(const ManyRowsShape& shape, uint32_t multiprocessors);

// Blocks of a launch, whole clusters; each has kManyRowsThreads.
int64_t many_rows_blocks(const ManyRowsShape& shape, const ManyRowsTiling& tiling,
                         uint32_t multiprocessors);
inline constexpr uint32_t kManyRowsThreads = 384;
uint32_t many_rows_shared_bytes(const ManyRowsShape& shape, const ManyRowsTiling& tiling);

// Rows of the boxes in which the kernel copies x, w, and the residual and the results.
struct ManyRowsBoxes {
  uint32_t x = 0, w = 0, y = 16;
};
ManyRowsBoxes many_rows_boxes(const ManyRowsShape& shape, const ManyRowsTiling& tiling);

// Entry "kiln_many_rows" with the parameters x, w, then those of `finish`, which makes the results
// from two neighbouring elements of the product (of each half), then tensor maps of x, w, the
// residual (of the results, where `finish` has none) and the results. To be compiled behind
// device_prelude(). REQUIRES: finish.parts is shape.halves, finish.result shape.result.
std::string many_rows_text(const ManyRowsShape& shape, const ManyRowsTiling& tiling, int64_t blocks,
                           const codegen::PairFunction& finish);

}  // namespace kiln
