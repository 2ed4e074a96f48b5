// Zeros for rows of attention that are masked throughout, for a library's call that does not make
// them: one loop finds the rows, another takes them out of the call's result.
#pragma once
#include <vector>

#include "builder/tactics/cuda/attention_operands.h"
#include "builder/verify/reference.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln {

struct MaskedRows {
  std::vector<ir::ValueId> inputs;    // of the body: what `find` reads
  std::vector<HostTensor> constants;  // and these behind them
  TensorType kept;                    // 1 for rows that see something, 0 for the others
  loop::LoopKernel find;              // inputs, constants -> kept
  loop::LoopKernel zero;  // the call's result, stored as the body's output; kept -> output
};

// REQUIRES: there is a mask, of a float type. kUnsupported: a part of it is no loop.
Result<MaskedRows> masked_rows(const ir::Graph& body, const AttentionOperands& operands);

}  // namespace kiln
