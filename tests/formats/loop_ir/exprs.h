// The exprs of a loop kernel, one call each.
#pragma once
#include <utility>
#include <vector>

#include "formats/loop_ir/loop_kernel.h"

namespace kiln::loop::test {

inline IndexMap affine(std::vector<std::pair<uint32_t, int64_t>> strides, int64_t offset = 0) {
  IndexMap map;
  map.offset = offset;
  for (const auto& [dim, stride] : strides) map.terms.push_back({dim, 1, 0, stride});
  return map;
}

inline Expr load(uint32_t buffer, IndexMap map, std::vector<Bound> bounds = {}) {
  Expr expr;
  expr.kind = Expr::Kind::kLoad;
  expr.buffer = buffer;
  expr.map = std::move(map);
  expr.bounds = std::move(bounds);
  return expr;
}

inline Expr apply(ScalarFn fn, std::vector<ExprId> args, DType dtype = DType::kF32) {
  Expr expr;
  expr.kind = Expr::Kind::kApply;
  expr.fn = fn;
  expr.args = std::move(args);
  expr.dtype = dtype;
  return expr;
}

inline Expr reduce(ReduceFn fn, ExprId arg) {
  Expr expr;
  expr.kind = Expr::Kind::kReduce;
  expr.reduce_fn = fn;
  expr.args = {arg};
  return expr;
}

inline Expr store(uint32_t buffer, ExprId arg, IndexMap map) {
  Expr expr;
  expr.kind = Expr::Kind::kStore;
  expr.buffer = buffer;
  expr.args = {arg};
  expr.map = std::move(map);
  return expr;
}

}  // namespace kiln::loop::test
