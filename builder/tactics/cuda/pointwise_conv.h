// A convolution of single cells, channels last, as the product that it is: every cell of the input
// is a row.
#pragma once
#include "builder/ir/graph.h"

namespace kiln {

// A contraction of the same inputs and result with other shapes, [cells, channels]. kUnsupported,
// with the reason: windows, strides, groups, operands whose channels are not last, or an epilogue
// that is more than functions of single elements.
Result<ir::Region> as_product(const ir::Region& region);

}  // namespace kiln
