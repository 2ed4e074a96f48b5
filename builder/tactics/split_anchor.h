// A region as a call for its anchor and one loop kernel for the rest.
#pragma once
#include "builder/tactics/epilogue_chain.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln {

struct SplitRest {
  TensorType anchor_result;         // as the call stores it
  std::vector<ir::ValueId> inputs;  // of the body, but for the anchor's result
  size_t anchor_input = 0;          // which of the loop's inputs that one is
  loop::LoopKernel kernel;          // the body's outputs from these inputs
};

// What is left of `body` when `chain` is its anchor (match_anchor). Steps of the chain are the
// call's, so a bias that the call leaves out must not be among them. kUnsupported: nothing is left,
// or the rest is no loop.
Result<SplitRest> split_rest(const ir::Graph& body, const EpilogueChain& chain);

}  // namespace kiln
