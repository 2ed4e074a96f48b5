// StridedView: a value of a body as a library can read it in place, when nothing but reshapes,
// transposes and slices lie between it and an input.
#pragma once
#include "builder/ir/graph.h"

namespace kiln {

struct StridedView {
  ir::ValueId source;   // an input or constant of the body, or its output
  Shape dims, strides;  // in elements
  int64_t offset = 0;   // of element 0, in elements
};

// How `value` lies in the input that it is a view of. The error is the one-line reason why it lies
// in none: an axis of it that joins two of the input's with others between them, as batch and heads
// of [batch, tokens, heads, depth], has no single stride. `passed` collects the nodes in between.
Result<StridedView> view_of_input(const ir::Graph& body, ir::ValueId value,
                                  std::vector<ir::NodeId>& passed);
// The same of a value that may repeat what it is a view of: along such an axis it has extent 1; the
// outermost may also begin anew after each of its view's extent. What it views may be widened on
// the way, from f16 or bf16 to f32: the source is what is to be read.
Result<StridedView> repeated_view_of_input(const ir::Graph& body, ir::ValueId value,
                                           std::vector<ir::NodeId>& passed);
// How `value` lies in the body's only output, when all that follows it is reshapes and transposes.
Result<StridedView> view_in_output(const ir::Graph& body, ir::ValueId value,
                                   std::vector<ir::NodeId>& passed);

}  // namespace kiln
