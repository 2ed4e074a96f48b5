// Copies between strided views: what every data movement operation comes down to.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/tensor_type.h"

namespace kiln::host {

// A view: element (i0, i1, ...) lies at offset + sum of i * stride. Units are elements.
struct Strided {
  int64_t offset = 0;
  std::vector<int64_t> strides;  // one an axis; zero or negative is fine in a source
};

// to[i] = from[i] for every index i of `extents`. The views must stay inside their buffers.
// element_bytes is 1, 2, 4 or 8.
void copy_strided(const Shape& extents, const void* from, const Strided& source, void* to,
                  const Strided& target, int64_t element_bytes);

// Row-major strides of `shape` aligned to the trailing axes of a result of `rank` axes; extents of
// 1 get stride 0: numpy's broadcasting.
std::vector<int64_t> broadcast_strides(const Shape& shape, size_t rank);

}  // namespace kiln::host
