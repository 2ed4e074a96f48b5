// TacticProvider "attention": kernels/attention.cuh, on operands as they lie in the region's
// inputs.
#pragma once
#include "builder/tactics/tactic.h"

namespace kiln {

// Keys are tilings: "w4.n64", 4 warps of 16 rows, 64 columns at a time.
std::vector<Tactic> attention_candidates(const TacticQuery& query, std::string& refusal);
Result<Lowered> attention_lower(const TacticQuery& query, const Tactic& tactic);

}  // namespace kiln
