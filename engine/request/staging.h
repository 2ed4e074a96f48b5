// Padding a request of n rows to its bucket: copies of the tensors that grow with the batch, in the
// context's memory behind the arena.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/engine_file/plan.h"

namespace kiln {

// A tensor with `batch` rows along its batch axis: `blocks` times (batch * row_bytes) bytes. With
// the batch axis first there is one block.
struct RowLayout {
  uint64_t blocks = 0;
  uint64_t row_bytes = 0;
};

// Where a staged tensor lies in the context's memory.
struct StagedTensor {
  bool staged = false;  // false: it does not grow with the batch
  RowLayout rows;
  uint64_t offset = 0;
};

struct StagingLayout {
  std::vector<StagedTensor> inputs, outputs;
  bool possible = false;  // the point takes padded requests
  uint64_t end = 0;       // bytes of arena and staging
};

// Staging starts on 64 bytes, as each staged tensor does. REQUIRES: a checked plan.
StagingLayout lay_out_staging(const plan::Plan& plan, const plan::ShapePoint& point);

// Copies rows and repeats the last one up to `to_rows`: real values, so that padding cannot make
// infinities or NaNs that the request did not have. REQUIRES: 1 <= from_rows <= to_rows.
void pad_rows(const void* from, int64_t from_rows, void* to, int64_t to_rows, RowLayout layout);

// Copies the first `to_rows` rows. REQUIRES: to_rows <= from_rows.
void trim_rows(const void* from, int64_t from_rows, void* to, int64_t to_rows, RowLayout layout);

}  // namespace kiln
