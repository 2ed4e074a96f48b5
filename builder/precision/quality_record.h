// What hold_quality() found, as strings that a timing cache keeps.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "builder/precision/hold_quality.h"
#include "builder/verify/reference.h"

namespace kiln::precision {

// Names what was measured: the graph with the names of its regions, the dtypes and every input.
std::string quality_question(const ir::Graph& graph, DType narrow, DType io,
                             std::span<const std::vector<HostTensor>> inputs);

std::vector<std::string> to_values(const HeldQuality& held);
// The inverse; nullopt for anything else.
std::optional<HeldQuality> held_quality_of(std::span<const std::string> values);

}  // namespace kiln::precision
