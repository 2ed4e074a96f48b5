#include "builder/codegen/normalize_loop.h"

#include <algorithm>
#include <vector>

#include "formats/loop_ir/analysis.h"

namespace kiln::codegen {
namespace {

using loop::Bound;
using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using loop::LoopKernel;
using loop::MapTerm;

template <class Visit>
void for_each_map(LoopKernel& kernel, Visit&& visit) {
  for (Expr& expr : kernel.exprs) {
    visit(expr.map);
    for (Bound& bound : expr.bounds) visit(bound.map);
  }
}

void remove_dead_exprs(LoopKernel& kernel) {
  std::vector<bool> live(kernel.exprs.size());
  for (size_t id = kernel.exprs.size(); id-- > 0;) {
    const Expr& expr = kernel.exprs[id];
    if (expr.kind == Expr::Kind::kStore) live[id] = true;
    if (!live[id]) continue;
    for (const ExprId arg : expr.args) live[arg] = true;
    for (const auto& gather : expr.map.gathers) live[gather.index] = true;
  }
  std::vector<ExprId> renamed(kernel.exprs.size());
  std::vector<Expr> exprs;
  for (size_t id = 0; id < kernel.exprs.size(); ++id) {
    if (!live[id]) continue;
    renamed[id] = static_cast<ExprId>(exprs.size());
    exprs.push_back(std::move(kernel.exprs[id]));
    for (ExprId& arg : exprs.back().args) arg = renamed[arg];
    for (auto& gather : exprs.back().map.gathers) gather.index = renamed[gather.index];
  }
  kernel.exprs = std::move(exprs);
}

void remove_dim(LoopKernel& kernel, uint32_t dim) {
  kernel.dims.erase(kernel.dims.begin() + dim);
  for_each_map(kernel, [&](IndexMap& map) {
    std::erase_if(map.terms, [&](const MapTerm& term) { return term.dim == dim; });
    for (MapTerm& term : map.terms) term.dim -= term.dim > dim ? 1 : 0;
  });
}

// A modulus that the quotient never reaches says nothing.
void simplify_terms(LoopKernel& kernel) {
  for_each_map(kernel, [&](IndexMap& map) {
    for (MapTerm& term : map.terms) {
      const int64_t extent = kernel.dims[term.dim].extent;
      if (term.modulus != 0 && extent > 0 && (extent - 1) / term.divisor < term.modulus) {
        term.modulus = 0;
      }
    }
  });
}

struct Strides {
  int64_t outer = 0, inner = 0;
  bool affine = true;
};

Strides strides_of(const IndexMap& map, uint32_t outer, uint32_t inner) {
  Strides strides;
  for (const MapTerm& term : map.terms) {
    if (term.dim != outer && term.dim != inner) continue;
    if (term.divisor != 1 || term.modulus != 0) strides.affine = false;
    (term.dim == outer ? strides.outer : strides.inner) = term.stride;
  }
  return strides;
}

bool can_merge(LoopKernel& kernel, uint32_t outer, uint32_t inner) {
  if (kernel.dims[outer].reduced != kernel.dims[inner].reduced) return false;
  const int64_t extent = kernel.dims[inner].extent;
  bool same = true;
  for_each_map(kernel, [&](const IndexMap& map) {
    const Strides strides = strides_of(map, outer, inner);
    if (!strides.affine || strides.outer != strides.inner * extent) same = false;
  });
  return same;
}

bool merge_some_dims(LoopKernel& kernel) {
  for (uint32_t outer = 0; outer < kernel.dims.size(); ++outer) {
    for (uint32_t inner = 0; inner < kernel.dims.size(); ++inner) {
      if (outer == inner || !can_merge(kernel, outer, inner)) continue;
      kernel.dims[inner].extent *= kernel.dims[outer].extent;
      remove_dim(kernel, outer);
      return true;
    }
  }
  return false;
}

}  // namespace

void normalize(LoopKernel& kernel) {
  remove_dead_exprs(kernel);
  simplify_terms(kernel);
  for (uint32_t dim = static_cast<uint32_t>(kernel.dims.size()); dim-- > 0;) {
    if (kernel.dims[dim].extent == 1) remove_dim(kernel, dim);
  }
  while (merge_some_dims(kernel)) {
  }
}

}  // namespace kiln::codegen
