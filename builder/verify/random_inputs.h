// Random values that a graph accepts: integers that index an embedding stay inside of it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/verify/reference.h"

namespace kiln {

// One tensor for each input of the graph; those in `known` are taken as they are. Floats are normal
// with mean 0 and deviation 1; integers are in [0, n) when they index n things, else 0 or 1; bools
// are either. The same seed gives the same values.
std::vector<HostTensor> random_inputs(const ir::Graph& graph, uint64_t seed,
                                      std::span<const std::optional<HostTensor>> known = {});

// Exclusive bound of an integer input, as random_inputs uses it.
int64_t index_bound(const ir::Graph& graph, ir::ValueId input);

}  // namespace kiln
