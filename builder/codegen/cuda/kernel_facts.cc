#include "builder/codegen/cuda/kernel_facts.h"

#include <algorithm>
#include <limits>

#include "builder/codegen/free_roundings.h"

namespace kiln::codegen {
namespace {

using loop::DimSet;
using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

constexpr int64_t kMaxNarrow = std::numeric_limits<int32_t>::max();
// Threads of a block, times lanes, times chunks: how far beyond the last point an index may be.
constexpr int64_t kLargestStep = 1024 * 32 * 16;

bool is_narrow(const loop::IndexMap& map, const loop::LoopKernel& kernel) {
  // Partial sums too must fit, and a map's terms may have both signs.
  __int128 reach = map.offset < 0 ? -static_cast<__int128>(map.offset) : map.offset;
  const auto add = [&](int64_t last, int64_t stride) {
    const __int128 end = static_cast<__int128>(last) * stride;
    reach += end < 0 ? -end : end;
  };
  for (const auto& term : map.terms) add(loop::term_extent(term, kernel) - 1, term.stride);
  for (const auto& gather : map.gathers) add(std::max<int64_t>(gather.extent, 1), gather.stride);
  return reach <= kMaxNarrow;
}

int64_t stride_along(const loop::IndexMap& map, uint32_t dim) {
  int64_t stride = 0;
  for (const loop::MapTerm& term : map.terms) {
    if (term.dim == dim && term.divisor == 1) stride += term.stride;
  }
  return stride < 0 ? -stride : stride;
}

bool is_whole(const Expr& e) {
  const bool rounds =
      e.kind == Kind::kApply &&
      (e.fn == ScalarFn::kRound || e.fn == ScalarFn::kFloor || e.fn == ScalarFn::kCeil);
  return rounds || (e.kind == Kind::kCast && !is_float(e.dtype));
}

std::vector<bool> find_single_touches(const KernelFacts& facts) {
  const loop::LoopKernel& kernel = facts.kernel;
  std::vector<int> uses(kernel.buffers.size());
  const auto touches = [&](const Expr& e) {
    return e.kind == Kind::kLoad || e.kind == Kind::kStore;
  };
  for (ExprId id = 0; id < kernel.exprs.size(); ++id) {
    if (facts.live[id] && touches(facts.expr(id))) ++uses[facts.expr(id).buffer];
  }
  std::vector<bool> once;
  for (const Expr& e : kernel.exprs) {
    once.push_back(touches(e) && uses[e.buffer] == 1 && e.map.gathers.empty() &&
                   loop::is_injective(e.map, facts.parallel | facts.reduced, kernel));
  }
  return once;
}

}  // namespace

bool contains(DimSet dims, uint32_t dim) { return (dims >> dim & 1) != 0; }

KernelFacts::KernelFacts(const loop::LoopKernel& of) : kernel(of) {
  reduced = loop::reduced_dims(kernel);
  for (uint32_t d = 0; d < kernel.dims.size(); ++d) {
    if (!contains(reduced, d)) parallel |= DimSet{1} << d;
  }
  varying = loop::varying_dims(kernel);
  level.resize(kernel.exprs.size());
  live.resize(kernel.exprs.size());
  for (ExprId id = 0; id < kernel.exprs.size(); ++id) {
    for (const ExprId operand : operands(id)) level[id] = std::max(level[id], level[operand]);
    if (expr(id).kind == Kind::kReduce) ++level[id];
  }
  for (auto id = static_cast<ExprId>(kernel.exprs.size()); id-- > 0;) {
    if (expr(id).kind == Kind::kStore) live[id] = true;
    if (!live[id]) continue;
    levels = std::max(levels, level[id] + 1);
    for (const ExprId operand : operands(id)) live[operand] = true;
  }
  makes_whole = std::ranges::any_of(kernel.exprs, is_whole);
  touches_once = find_single_touches(*this);
  ranges = value_ranges(kernel);
  tolerances = value_tolerances(kernel, ranges);
  rounds_freely = free_roundings(kernel);
  wide_index = extent(reduced | parallel) > kMaxNarrow - kLargestStep;
  for (const Expr& e : kernel.exprs) {
    wide_index |= !is_narrow(e.map, kernel);
    for (const loop::Bound& bound : e.bounds) wide_index |= !is_narrow(bound.map, kernel);
  }
}

std::vector<ExprId> KernelFacts::operands(ExprId id) const {
  std::vector<ExprId> ids = expr(id).args;
  for (const loop::GatherTerm& gather : expr(id).map.gathers) ids.push_back(gather.index);
  return ids;
}

bool KernelFacts::stores_every_point(ExprId id) const {
  return ((varying[id] | loop::dims_of(expr(id).map)) & reduced) != 0;
}

int64_t KernelFacts::extent(DimSet dims) const {
  return loop::points(kernel, dims).value_or(int64_t{1} << 62);
}

std::vector<uint32_t> KernelFacts::ordered(DimSet dims) const {
  std::vector<uint32_t> result;
  for (uint32_t d = 0; d < kernel.dims.size(); ++d) {
    if (contains(dims, d)) result.push_back(d);
  }
  // By the first store that moves along a dim, else the first load.
  const auto step = [&](uint32_t dim) -> int64_t {
    for (const Kind kind : {Kind::kStore, Kind::kLoad}) {
      for (const Expr& e : kernel.exprs) {
        if (e.kind != kind) continue;
        if (const int64_t stride = stride_along(e.map, dim)) return stride;
      }
    }
    return std::numeric_limits<int64_t>::max();
  };
  std::ranges::sort(result, {}, [&](uint32_t dim) { return std::pair(-step(dim), dim); });
  return result;
}

}  // namespace kiln::codegen
