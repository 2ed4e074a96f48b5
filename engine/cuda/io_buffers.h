// Where a shape point's inputs and outputs lie in a context's device memory: callers' tensors that
// the graphs do not take where they are (point_graphs.h) are copied here and back, padded rows
// included.
#pragma once
#include <vector>

#include "engine/cuda/owned.h"
#include "engine/request/choose_point.h"
#include "engine/request/staging.h"

namespace kiln::cuda {

// Bytes; what kernels and libraries may count on.
inline constexpr uint64_t kIoAlignment = 256;

struct IoLayout {
  std::vector<uint64_t> inputs, outputs;  // offsets
  uint64_t end = 0;                       // bytes of arena, inputs and outputs
};

// Behind the arena, on 256 bytes each and at least as far apart. REQUIRES: a checked plan.
IoLayout lay_out_io(const plan::ShapePoint& point);

// Copies of one tensor that are put into the stream: the caller's has `rows` rows, the context's
// `batch`. `from` and `to` of a void* are host or device memory.
struct RowCopy {
  const Device& device;
  CUstream stream = nullptr;
  int64_t rows = 0, batch = 0;
  RowLayout layout;
};
// The first `count` rows of an input.
Result<> copy_first_rows(const void* from, CUdeviceptr to, int64_t count, const RowCopy& copy);
// The last row of an input, to the end of the context's.
Result<> copy_last_row(const void* from, CUdeviceptr to, const RowCopy& copy);
// Makes the last `times` rows of the context's tensor the last one. REQUIRES: times <= batch.
Result<> repeat_last_row(CUdeviceptr tensor, int64_t times, const RowCopy& copy);
// The first `rows` rows of an output.
Result<> copy_trimmed(CUdeviceptr from, void* to, const RowCopy& copy);

}  // namespace kiln::cuda
