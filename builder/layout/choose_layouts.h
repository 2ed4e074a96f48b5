// Stores what convolutions in f16 or bf16 read and write as N, H, W, C, the order in which the
// GPU's matrix units take it. Everywhere else the order stays N, C, H, W, and nothing but the
// regions' bodies knows: a body transposes what it reads and writes, so that its meaning is the
// same, tactics see through the transposes, and loops fold them into their index maps.
//
// Regions of loops, pools and resizes between convolutions follow. Weights are stored again in that
// order. Where a region cannot follow, a region that does nothing but transpose stands in between.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::layout {

// Does nothing unless options.library_layouts. REQUIRES: every node is a Region.
Result<bool> choose_layouts(ir::Graph& graph, PassContext& context);

}  // namespace kiln::layout
