// A region's body again, for other dtypes at its borders.
#pragma once
#include <memory>
#include <span>

#include "builder/ir/graph.h"

namespace kiln::precision {

struct Borders {
  std::vector<DType> inputs, outputs;  // one for each of the body's
  DType anchor = DType::kF32;          // what the contraction's operands are read in
};

// Arithmetic stays in f32: narrow inputs are widened as they are read and results rounded as they
// are stored; a contraction reads its operands in `borders.anchor`. Data that is only moved is not
// converted on the way.
Result<std::shared_ptr<const ir::Graph>> retype_body(const ir::Graph& body, const Borders& borders);

// The body inputs that a contraction reads, which must come in borders.anchor (no mask).
std::vector<bool> anchor_operands(const ir::Graph& body);

}  // namespace kiln::precision
