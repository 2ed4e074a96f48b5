// Tactic provider "cudnn": convolutions with their epilogues, and attention.
#pragma once
#include "builder/tactics/tactic.h"

namespace kiln {

// Keys name the form and the engine: "fused/e10.5=2", "residual-first/e41.2=1", "split/e22.1=0",
// "padded/e10.5=2", "folded/e10.5=2" (widen_channels.h), "attention/e3".
std::vector<Tactic> cudnn_candidates(const TacticQuery& query, std::string& refusal);

// Library calls, and in split forms "loop" host calls for what is around them, which lower_device()
// turns into launches.
Result<Lowered> cudnn_lower(const TacticQuery& query, const Tactic& tactic);

}  // namespace kiln
