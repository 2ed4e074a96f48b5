// The text of kernels/attention.cuh for one problem and tiling.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln {

// Where a tensor of batch, heads, rows, elements lies in its buffer, in elements.
struct AttentionPlace {
  int64_t offset = 0, batch = 0, head = 0, row = 0, element = 1;
};

struct AttentionShape {
  DType dtype = DType::kF16;  // of q, k, v and y: f16 or bf16
  int64_t batch = 1, heads = 1, key_heads = 1;
  int64_t rows = 1, columns = 1;         // tokens of q, of k and v
  int64_t depth = 16, value_depth = 16;  // elements of a token of q and k, of v and y
  AttentionPlace q, k, v, y;
  double scale = 1;
  bool causal = false;        // row r sees columns up to r
  DType mask = DType::kBool;  // `dtype` or f32, added to the scores; kBool: there is none
  AttentionPlace mask_place;  // its rows are those of q, its elements columns; 0 where it repeats
  int64_t mask_period = 0;    // rows of the batch after which it begins anew; 0: never
  // Rows that see nothing but -inf of the mask: zeros, or the mean of v.
  bool masked_row_zero = false;
};

// How much of it a block takes.
struct AttentionTiling {
  int64_t warps = 4;  // of 16 rows each
  int64_t tile = 64;  // columns in shared memory at a time
};

// The one-line reason why the kernel cannot do it.
Result<> check_attention_shape(const AttentionShape& shape);

// A few tilings that suit it, the likeliest first. REQUIRES: check_attention_shape(shape) was ok.
std::vector<AttentionTiling> attention_tilings(const AttentionShape& shape);

// Entry "kiln_attention" with the parameters q, k, v, mask, y; mask is not read where there is
// none. To be compiled behind device_prelude(). Buffers begin on 16-byte boundaries.
std::string attention_text(const AttentionShape& shape, const AttentionTiling& tiling);

int64_t attention_blocks(const AttentionShape& shape, const AttentionTiling& tiling);

}  // namespace kiln
