// BatchNorm and other per-channel scales and shifts after a contraction with constant weights are
// folded into weights and bias, in f64, rounded once.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> fold_channel_affine(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
