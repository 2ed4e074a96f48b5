// Tactic provider "cublaslt": contractions with their epilogues.
#pragma once
#include "builder/tactics/tactic.h"

namespace kiln {

// Keys name the form and the algorithm: "fused/a66.t20...": one call for the whole region;
// "split/a66.t20...": a call for the product, a generated kernel for what follows it. "fused-fast"
// and "split-fast" let the tensor cores sum products of 8-bit operands in fewer bits.
std::vector<Tactic> cublaslt_candidates(const TacticQuery& query, std::string& refusal);

// Needs no GPU. Split forms hold a "loop" host call, which lower_device() turns into a launch.
Result<Lowered> cublaslt_lower(const TacticQuery& query, const Tactic& tactic);

}  // namespace kiln
