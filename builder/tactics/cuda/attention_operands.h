// Attention's operands as they lie in a region's inputs: heads behind tokens or before, q, k and v
// in one tensor or in three.
#pragma once
#include <optional>

#include "builder/ir/graph.h"
#include "builder/tactics/strided_view.h"

namespace kiln {

struct AttentionOperands {
  ir::NodeId anchor = ir::kNoNode;
  const ir::Attention* op = nullptr;  // of the body
  StridedView q, k, v;                // batch, heads, tokens, elements
  // Batch, heads, rows, columns; extents of 1 repeat, and a batch of fewer begins anew.
  std::optional<StridedView> mask;
  StridedView y;  // in the body's output
};

// The error is the one-line reason why the body is more than an Attention node between views.
Result<AttentionOperands> attention_operands(const ir::Graph& body);

}  // namespace kiln
