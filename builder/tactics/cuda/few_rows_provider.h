// Tactics for products of few rows: our own kernel, with what follows the product inside.
#pragma once
#include "builder/tactics/tactic.h"

namespace kiln {

std::vector<Tactic> few_rows_candidates(const TacticQuery& query, std::string& refusal);
Result<Lowered> few_rows_lower(const TacticQuery& query, const Tactic& tactic);

}  // namespace kiln
