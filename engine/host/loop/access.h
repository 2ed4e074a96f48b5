// Access: an index map (and the bounds beside it) prepared for walking over blocks of lanes. The
// lanes of a block are consecutive points of the lane dims, flattened row-major; the other dims
// stand still for the block.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/loop_ir/loop_kernel.h"

namespace kiln::host {

// Lanes [first, first + count) of a block; lane first + i has address `start + i * step`.
struct Run {
  int64_t first = 0, count = 0;
  int64_t start = 0, step = 0;
  bool inside = true;  // whether the bounds hold; if not, the address means nothing
};

class Access {
 public:
  // lane_dims: outer to inner.
  Access(const loop::LoopKernel& kernel, const loop::IndexMap& map,
         std::span<const loop::Bound> bounds, std::span<const uint32_t> lane_dims);

  // Calls visit(const Run&) for lanes [0, count) of the block at flat lane position `position`, in
  // order. `point` holds the index of every dim; those of lane dims are scratch.
  template <class Visit>
  void for_each_run(int64_t position, int64_t count, std::vector<int64_t>& point,
                    Visit&& visit) const {
    if (lane_terms_only_affine_) {
      walk_affine(position, count, point, visit);
    } else {
      walk_lanes(position, count, point, visit);
    }
  }

  // Whether the block is one run without bounds: its address is then address(...) + i * step().
  bool is_one_run() const {
    return lane_terms_only_affine_ && bounds_.empty() && dims_.size() <= 1;
  }
  int64_t step() const { return dims_.empty() ? 0 : dims_[0].steps[0]; }
  // The dims along which a run may go, as a bit set.
  uint32_t dims_of_a_run() const { return run_dims_; }
  // REQUIRES: is_one_run().
  int64_t address(int64_t position, const std::vector<int64_t>& point) const {
    return value(map_, still_terms_, point) + position * step();
  }

 private:
  // One or several lane dims that all maps walk as one.
  struct LaneDim {
    int64_t extent;
    std::vector<int64_t> steps;  // of the map, then of each bound's map
    uint32_t dims;               // as a bit set
  };
  struct Limit {
    loop::IndexMap map;
    std::vector<loop::MapTerm> still_terms;
    int64_t low, high;
  };

  static int64_t value(const loop::IndexMap& map, const std::vector<loop::MapTerm>& terms,
                       const std::vector<int64_t>& point) {
    int64_t sum = map.offset;
    for (const loop::MapTerm& term : terms) {
      const int64_t quotient = term.divisor == 1 ? point[term.dim] : point[term.dim] / term.divisor;
      sum += term.stride * (term.modulus == 0 ? quotient : quotient % term.modulus);
    }
    return sum;
  }

  template <class Visit>
  void walk_affine(int64_t position, int64_t count, const std::vector<int64_t>& point,
                   Visit&& visit) const;
  template <class Visit>
  void emit_bounded(const Run& run, const int64_t* values, const int64_t* steps,
                    Visit&& visit) const;
  template <class Visit>
  void walk_lanes(int64_t position, int64_t count, std::vector<int64_t>& point,
                  Visit&& visit) const;

  loop::IndexMap map_;
  std::vector<loop::MapTerm> still_terms_;  // of dims that are no lane dims
  std::vector<Limit> bounds_;
  bool lane_terms_only_affine_ = true;
  std::vector<LaneDim> dims_;  // outer to inner; when affine
  uint32_t run_dims_ = 0;
  std::vector<uint32_t> lane_dims_;
  std::vector<int64_t> lane_extents_;
};

// --- implementation of the templates ---

namespace access_detail {

inline constexpr size_t kMaxDims = 24;
inline constexpr size_t kMaxMaps = 65;  // verify() allows 64 bounds

inline int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// The range of i in [0, count) with low <= start + i * step < high.
struct Range {
  int64_t begin, end;
};
inline Range lanes_within(int64_t start, int64_t step, int64_t low, int64_t high, int64_t count) {
  if (step == 0) return low <= start && start < high ? Range{0, count} : Range{0, 0};
  // i >= ceil((low - start) / step) and i <= floor((high - 1 - start) / step), for step > 0.
  const int64_t near = step > 0 ? low : high - 1, far = step > 0 ? high - 1 : low;
  const int64_t begin = -floor_div(start - near, step);
  const int64_t end = floor_div(far - start, step) + 1;
  const int64_t b = begin < 0 ? 0 : begin, e = end > count ? count : end;
  return b < e ? Range{b, e} : Range{0, 0};
}

}  // namespace access_detail

template <class Visit>
void Access::emit_bounded(const Run& run, const int64_t* values, const int64_t* steps,
                          Visit&& visit) const {
  int64_t begin = 0, end = run.count;
  for (size_t b = 0; b < bounds_.size() && begin < end; ++b) {
    const auto range = access_detail::lanes_within(values[b + 1], steps[b + 1], bounds_[b].low,
                                                   bounds_[b].high, run.count);
    begin = begin > range.begin ? begin : range.begin;
    end = end < range.end ? end : range.end;
  }
  if (begin >= end) begin = end = run.count;
  if (begin > 0) visit(Run{run.first, begin, 0, 0, false});
  if (begin < end) {
    visit(Run{run.first + begin, end - begin, run.start + begin * run.step, run.step, true});
  }
  if (end < run.count) visit(Run{run.first + end, run.count - end, 0, 0, false});
}

template <class Visit>
void Access::walk_affine(int64_t position, int64_t count, const std::vector<int64_t>& point,
                         Visit&& visit) const {
  const size_t maps = bounds_.size() + 1;
  int64_t values[access_detail::kMaxMaps];
  values[0] = value(map_, still_terms_, point);
  for (size_t b = 0; b < bounds_.size(); ++b) {
    values[b + 1] = value(bounds_[b].map, bounds_[b].still_terms, point);
  }
  static constexpr int64_t kNoSteps[access_detail::kMaxMaps] = {};
  if (dims_.empty()) {
    emit_bounded(Run{0, count, values[0], 0, true}, values, kNoSteps, visit);
    return;
  }
  int64_t index[access_detail::kMaxDims];
  int64_t rest = position;
  for (size_t d = dims_.size(); d-- > 0;) {
    index[d] = d == 0 ? rest : rest % dims_[d].extent;
    rest /= dims_[d].extent;
    for (size_t m = 0; m < maps; ++m) values[m] += index[d] * dims_[d].steps[m];
  }
  const LaneDim& inner = dims_.back();
  const size_t last = dims_.size() - 1;
  for (int64_t lane = 0; lane < count;) {
    const int64_t size = std::min(count - lane, inner.extent - index[last]);
    emit_bounded(Run{lane, size, values[0], inner.steps[0], true}, values, inner.steps.data(),
                 visit);
    lane += size;
    if (lane >= count) break;
    for (size_t m = 0; m < maps; ++m) values[m] -= index[last] * inner.steps[m];
    index[last] = 0;
    for (size_t d = last; d-- > 0;) {
      for (size_t m = 0; m < maps; ++m) values[m] += dims_[d].steps[m];
      if (++index[d] < dims_[d].extent || d == 0) break;
      for (size_t m = 0; m < maps; ++m) values[m] -= dims_[d].extent * dims_[d].steps[m];
      index[d] = 0;
    }
  }
}

template <class Visit>
void Access::walk_lanes(int64_t position, int64_t count, std::vector<int64_t>& point,
                        Visit&& visit) const {
  int64_t rest = position;
  for (size_t d = lane_dims_.size(); d-- > 0;) {
    point[lane_dims_[d]] = rest % lane_extents_[d];
    rest /= lane_extents_[d];
  }
  for (int64_t lane = 0; lane < count; ++lane) {
    Run run{lane, 1, value(map_, map_.terms, point), 0, true};
    for (const Limit& bound : bounds_) {
      const int64_t at = value(bound.map, bound.map.terms, point);
      if (at < bound.low || at >= bound.high) run.inside = false;
    }
    visit(run);
    for (size_t d = lane_dims_.size(); d-- > 0;) {
      if (++point[lane_dims_[d]] < lane_extents_[d]) break;
      point[lane_dims_[d]] = 0;
    }
  }
}

}  // namespace kiln::host
