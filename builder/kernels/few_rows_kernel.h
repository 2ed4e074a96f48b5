// The text of kernels/few_rows*.cuh for one problem and tiling.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "builder/codegen/cuda/point_function.h"
#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln {

// x [rows, depth] times the transpose of w [parts * columns, depth], both dense; results are
// [rows, columns].
struct FewRowsShape {
  DType dtype = DType::kBF16;  // of x and w: f16, bf16, f8e4m3fn or f32; sums are in f32
  int64_t rows = 1, columns = 1, depth = 1;
  bool constant_weights = true;  // no kernel writes w
  int64_t parts = 1;             // 2: both halves of a row of the product meet in the results
};

// How the work is spread.
struct FewRowsTiling {
  int64_t groups = 1;  // of 8 columns that a warp takes at a time; a multiple of the parts
  int64_t steps = 2;   // of 64 bytes of a column that are copied together
  int64_t warps = 8;   // of a block, which share the depth
  int64_t ring = 4;    // copies under way
  int64_t blocks = 2;  // of a multiprocessor, which holds as many of the next kernel
  bool keep = false;   // x stays in registers from tile to tile
  bool once = false;   // w is the first to leave the second cache
  int64_t late = -1;   // stages left to be copied when the next kernel may start; -1: all
  int64_t ahead = 0;   // tiles that are copied into the second cache before x is there
  int64_t split = 1;   // blocks of a cluster, which share the depth
  friend bool operator==(const FewRowsTiling&, const FewRowsTiling&) = default;
};
// "g1.s2.w8.r4.b2.keep.once.l0.a1.k2"
std::string to_string(const FewRowsTiling& tiling);

// The one-line reason why the kernel cannot do it.
Result<> check_few_rows(const FewRowsShape& shape, uint32_t compute_capability);

// At most 12 tilings that suit it and the GPU, the likeliest first. REQUIRES:
// check_few_rows() was ok.
std::vector<FewRowsTiling> few_rows_tilings(const FewRowsShape& shape, uint32_t compute_capability);

// Blocks of a launch: all that the multiprocessors are to hold, while there are tiles for them;
// whole clusters.
int64_t few_rows_blocks(const FewRowsShape& shape, const FewRowsTiling& tiling,
                        uint32_t multiprocessors);

// Entry "kiln_few_rows" with the parameters x, w, then those of `finish`, which makes the results
// from an element of each part of a row. REQUIRES: finish.parts is shape.parts. To be compiled
// behind device_prelude(). Buffers begin on 16-byte boundaries; the launch asks for
// shared_bytes_in_half() of the tiling's blocks.
std::string few_rows_text(const FewRowsShape& shape, const FewRowsTiling& tiling, int64_t blocks,
                          const codegen::RowFunction& finish);

}  // namespace kiln
