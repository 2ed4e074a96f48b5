// Inputs to verify and to measure with: random values, and images where a model seems to take them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/shape_point.h"
#include "builder/verify/reference.h"

namespace kiln {

// As random_inputs, but float inputs of rank 4 with 1 to 4 channels first or last hold images of
// about unit scale for two seeds in three: noise, what is smooth as a photograph, and a page with
// strokes. Networks see other statistics in each: noise leaves a text detector's output empty.
std::vector<HostTensor> realistic_inputs(const ir::Graph& graph, uint64_t seed,
                                         std::span<const std::optional<HostTensor>> known = {});

// By input: the value that the point fixes, nullopt where it does not.
std::vector<std::optional<HostTensor>> fixed_inputs(const ir::Graph& graph,
                                                    const ShapePoint& point);

}  // namespace kiln
