// Rows along a tensor's batch axis: taken out, and put together again.
#pragma once
#include <span>
#include <vector>

#include "builder/verify/reference.h"

namespace kiln {

// Joins tensors along `axis`. REQUIRES: equal types, at least one, 8-bit elements or wider.
HostTensor stack_rows(std::span<const HostTensor> rows, int axis);

// The i-th of `count` equal parts along `axis`. REQUIRES: count divides the extent.
HostTensor take_row(const HostTensor& tensor, int axis, int64_t i, int64_t count);

}  // namespace kiln
