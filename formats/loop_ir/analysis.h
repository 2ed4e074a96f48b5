// Facts about a loop kernel that its users share: which dims an expression varies with, and the
// range of an index map.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/loop_ir/loop_kernel.h"

namespace kiln::loop {

inline constexpr size_t kMaxDims = 24;

// Bit d stands for dim d.
using DimSet = uint32_t;

DimSet reduced_dims(const LoopKernel& kernel);
DimSet dims_of(const IndexMap& map);  // gathers aside
// For each expr the dims that its value may vary with; a kReduce varies with parallel dims only.
// REQUIRES: args and gathers refer backwards, dims exist.
std::vector<DimSet> varying_dims(const LoopKernel& kernel);

// Both ends included.
struct Interval {
  int64_t low = 0, high = 0;
};
// The values of a term or map over all points; an empty dim counts as having the point 0, a gather
// as in range. Nullopt when some partial sum could pass 2^61.
std::optional<Interval> range_of(const IndexMap& map, const LoopKernel& kernel);
// The number of values of (d / divisor) % modulus.
int64_t term_extent(const MapTerm& term, const LoopKernel& kernel);
// Whether the map takes a different value at each point of `dims` and only there: no terms of
// other dims. Extent-1 dims do not matter.
bool is_injective(const IndexMap& map, DimSet dims, const LoopKernel& kernel);

// Product of the extents; nullopt when it passes 2^62.
std::optional<int64_t> points(const LoopKernel& kernel, DimSet dims);

}  // namespace kiln::loop
