#include "formats/loop_ir/analysis.h"

#include <algorithm>

namespace kiln::loop {
namespace {

constexpr __int128 kMaxOffset = __int128{1} << 61;

// Whether the terms of one dim together determine it: (d % m1), (d / m1) % m2, ... to its end.
bool determines(std::vector<MapTerm> terms, int64_t extent) {
  std::ranges::sort(terms, {}, &MapTerm::divisor);
  int64_t known = 1;  // d % known is determined
  for (const MapTerm& term : terms) {
    if (term.divisor != known) return false;
    if (term.modulus == 0) return true;
    if (term.modulus > extent / known) return true;
    known *= term.modulus;
  }
  return known >= extent;
}

}  // namespace

DimSet reduced_dims(const LoopKernel& kernel) {
  DimSet set = 0;
  for (size_t d = 0; d < kernel.dims.size(); ++d) {
    if (kernel.dims[d].reduced) set |= DimSet{1} << d;
  }
  return set;
}

DimSet dims_of(const IndexMap& map) {
  DimSet set = 0;
  for (const MapTerm& term : map.terms) set |= DimSet{1} << term.dim;
  return set;
}

std::vector<DimSet> varying_dims(const LoopKernel& kernel) {
  const DimSet parallel = ~reduced_dims(kernel);
  std::vector<DimSet> sets;
  sets.reserve(kernel.exprs.size());
  for (const Expr& expr : kernel.exprs) {
    DimSet set = dims_of(expr.map);
    for (const Bound& bound : expr.bounds) set |= dims_of(bound.map);
    for (const GatherTerm& gather : expr.map.gathers) set |= sets[gather.index];
    for (const ExprId arg : expr.args) set |= sets[arg];
    sets.push_back(expr.kind == Expr::Kind::kReduce ? set & parallel : set);
  }
  return sets;
}

int64_t term_extent(const MapTerm& term, const LoopKernel& kernel) {
  const int64_t extent = kernel.dims[term.dim].extent;
  if (extent == 0) return 1;
  const int64_t quotients = (extent - 1) / term.divisor + 1;
  return term.modulus == 0 ? quotients : std::min(quotients, term.modulus);
}

std::optional<Interval> range_of(const IndexMap& map, const LoopKernel& kernel) {
  __int128 low = map.offset, high = map.offset;
  __int128 magnitude = low < 0 ? -low : low;
  const auto add = [&](__int128 last, int64_t stride) {
    const __int128 end = last * stride;
    (end < 0 ? low : high) += end;
    magnitude += end < 0 ? -end : end;
  };
  for (const MapTerm& term : map.terms) add(term_extent(term, kernel) - 1, term.stride);
  for (const GatherTerm& gather : map.gathers) {
    add(std::max<int64_t>(gather.extent - 1, 0), gather.stride);
  }
  if (magnitude > kMaxOffset) return std::nullopt;
  return Interval{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

bool is_injective(const IndexMap& map, DimSet dims, const LoopKernel& kernel) {
  std::vector<MapTerm> terms;
  for (const MapTerm& term : map.terms) {
    if (term_extent(term, kernel) <= 1) continue;
    if ((dims >> term.dim & 1) == 0) return false;
    terms.push_back(term);
  }
  for (size_t d = 0; d < kernel.dims.size(); ++d) {
    if ((dims >> d & 1) == 0 || kernel.dims[d].extent <= 1) continue;
    std::vector<MapTerm> own;
    std::ranges::copy_if(terms, std::back_inserter(own), [&](auto& t) { return t.dim == d; });
    if (!determines(std::move(own), kernel.dims[d].extent)) return false;
  }
  // Mixed radix: each stride steps over all that the smaller ones can reach.
  const auto step = [](const MapTerm& term) -> __int128 {
    return term.stride < 0 ? -static_cast<__int128>(term.stride) : term.stride;
  };
  std::ranges::sort(terms, {}, step);
  __int128 reach = 0;
  for (const MapTerm& term : terms) {
    if (step(term) <= reach) return false;
    reach += step(term) * (term_extent(term, kernel) - 1);
  }
  return true;
}

std::optional<int64_t> points(const LoopKernel& kernel, DimSet dims) {
  Shape shape;
  for (size_t d = 0; d < kernel.dims.size(); ++d) {
    if (dims >> d & 1) shape.push_back(kernel.dims[d].extent);
  }
  return checked_element_count(shape);
}

}  // namespace kiln::loop
