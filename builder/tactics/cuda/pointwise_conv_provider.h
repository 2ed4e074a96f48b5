// Tactics for convolutions of single cells: those for the products that they are.
#pragma once
#include "builder/tactics/tactic.h"

namespace kiln {

std::vector<Tactic> pointwise_conv_candidates(const TacticQuery& query, std::string& refusal);
Result<Lowered> pointwise_conv_lower(const TacticQuery& query, const Tactic& tactic);

}  // namespace kiln
