// Lowers a region around its anchors: contractions, convolutions and other single kernels run as
// they are, and what lies between them becomes as few loop kernels as codegen accepts.
#pragma once
#include "builder/ir/graph.h"
#include "builder/tactics/lower_nodes.h"

namespace kiln {

// `rename` chooses the anchors' kernels; null: plain ones.
Result<Lowered> lower_grouped(const ir::Graph& body, NodeLowering::Rename rename = nullptr);

// A whole body as one loop kernel; the error is the one-line reason why it is none.
Result<Lowered> lower_loop_region(const ir::Graph& body);

// Pointwise, reductions and data movement: what loop kernels are made of.
bool is_loop_op(const ir::Op& op);

}  // namespace kiln
