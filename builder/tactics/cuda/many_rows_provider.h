// Tactics for products of many rows: our own kernel, with what follows the product inside.
#pragma once
#include "builder/tactics/tactic.h"

namespace kiln {

std::vector<Tactic> many_rows_candidates(const TacticQuery& query, std::string& refusal);
Result<Lowered> many_rows_lower(const TacticQuery& query, const Tactic& tactic);

}  // namespace kiln
