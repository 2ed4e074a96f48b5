#include "engine/host/loop/access.h"

#include <algorithm>

namespace kiln::host {
namespace {

using loop::MapTerm;

// The stride of a dim in an affine map.
int64_t stride_of(const loop::IndexMap& map, uint32_t dim) {
  int64_t stride = 0;
  for (const MapTerm& term : map.terms) stride += term.dim == dim ? term.stride : 0;
  return stride;
}

}  // namespace

Access::Access(const loop::LoopKernel& kernel, const loop::IndexMap& map,
               std::span<const loop::Bound> bounds, std::span<const uint32_t> lane_dims)
    : map_(map), lane_dims_(lane_dims.begin(), lane_dims.end()) {
  const auto is_lane_dim = [&](const MapTerm& term) {
    return std::ranges::find(lane_dims_, term.dim) != lane_dims_.end();
  };
  const auto still = [&](const loop::IndexMap& of) {
    std::vector<MapTerm> terms;
    for (const MapTerm& term : of.terms) {
      if (!is_lane_dim(term))
        terms.push_back(term);
      else if (term.divisor != 1 || term.modulus != 0)
        lane_terms_only_affine_ = false;
    }
    return terms;
  };
  still_terms_ = still(map_);
  for (const loop::Bound& bound : bounds) {
    // Maps stay within 2^61, so clamped limits mean the same and their arithmetic is safe.
    constexpr int64_t kLimit = (int64_t{1} << 61) + 1;
    bounds_.push_back({bound.map, still(bound.map), std::clamp(bound.low, -kLimit, kLimit),
                       std::clamp(bound.high, -kLimit, kLimit)});
  }
  for (const uint32_t dim : lane_dims_) lane_extents_.push_back(kernel.dims[dim].extent);
  if (!lane_terms_only_affine_) return;
  for (const uint32_t dim : lane_dims_) {
    if (kernel.dims[dim].extent == 1) continue;
    LaneDim next{kernel.dims[dim].extent, {stride_of(map_, dim)}, uint32_t{1} << dim};
    for (const Limit& bound : bounds_) next.steps.push_back(stride_of(bound.map, dim));
    bool as_one = !dims_.empty();
    for (size_t m = 0; as_one && m < next.steps.size(); ++m) {
      as_one = dims_.back().steps[m] == next.steps[m] * next.extent;
    }
    if (as_one) {
      next.extent *= dims_.back().extent;
      next.dims |= dims_.back().dims;
      dims_.pop_back();
    }
    dims_.push_back(std::move(next));
  }
  if (!dims_.empty()) run_dims_ = dims_.back().dims;
}

}  // namespace kiln::host
