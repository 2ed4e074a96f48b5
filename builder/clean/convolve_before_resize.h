// Puts convolutions of single cells in front of what enlarges their input: each cell is mixed with
// its own channels alone and each channel with its neighbours alone, so that the order does not
// matter, and there are fewer cells before. So climb U-Nets.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> convolve_before_resize(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
