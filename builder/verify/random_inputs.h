// Random values that a graph accepts: what indexes something stays inside of it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/verify/reference.h"

namespace kiln {

// One tensor for each input of the graph; those in `known` are taken as they are. What indexes n
// things is a whole number in [0, n); other floats are normal with mean 0 and deviation 1, other
// integers 0 or 1, bools either. The same seed gives the same values.
std::vector<HostTensor> random_inputs(const ir::Graph& graph, uint64_t seed,
                                      std::span<const std::optional<HostTensor>> known = {});

}  // namespace kiln
