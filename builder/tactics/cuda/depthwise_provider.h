// Tactics for convolutions of each channel by itself: our own kernel, with what follows the
// convolution inside.
#pragma once
#include "builder/tactics/tactic.h"

namespace kiln {

std::vector<Tactic> depthwise_candidates(const TacticQuery& query, std::string& refusal);
Result<Lowered> depthwise_lower(const TacticQuery& query, const Tactic& tactic);

}  // namespace kiln
