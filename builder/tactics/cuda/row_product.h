// A contraction region as our kernels for products take it: rows times columns of weights, and a
// loop over the elements behind it.
#pragma once
#include <optional>
#include <vector>

#include "builder/tactics/lowered.h"
#include "builder/tactics/split_anchor.h"
#include "builder/tactics/tactic.h"

namespace kiln {

// x [rows, depth] times the transpose of w [columns, depth], both dense and of `dtype`.
struct RowProduct {
  std::vector<ir::ValueId> operands;  // x, w
  DType dtype = DType::kF32;
  int64_t rows = 0, columns = 0, depth = 0;
  bool constant_weights = false;    // no kernel writes w
  SplitRest rest;                   // stores the product as it is where nothing follows it
  std::optional<SplitRest> behind;  // a loop of its own after that
};

// The error is the one-line reason why the region is none.
Result<RowProduct> match_row_product(const TacticQuery& query);

// For kernels that cannot make what follows the product: `rest` stores it, and what it was before
// is the loop behind.
void leave_rest(const ir::Graph& body, RowProduct& product);

// The launch, complete but for what it makes: the region's output, or what a loop behind it reads.
void add_launch(LocalLaunch launch, const ir::Graph& body, const RowProduct& product,
                Lowered& lowered);

// Where a launch reads x, w, then what `rest` reads but for the product.
std::vector<LocalBuffer> inputs_of(const ir::Graph& body, const RowProduct& product,
                                   Lowered& lowered);

}  // namespace kiln
