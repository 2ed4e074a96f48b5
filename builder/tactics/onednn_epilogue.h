// Maps a contraction's or convolution's epilogue to oneDNN's post-ops, where all of it fits.
#pragma once
#include "builder/ir/graph.h"
#include "builder/tactics/lowered.h"

namespace kiln {

// One oneDNN call for the whole body: anchor, then a chain of bias, residual and activations. The
// error is the one-line reason why the body is no such chain.
Result<Lowered> fuse_onednn_epilogue(const ir::Graph& body);

}  // namespace kiln
