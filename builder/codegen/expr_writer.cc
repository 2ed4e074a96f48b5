#include "builder/codegen/expr_writer.h"

#include <algorithm>

namespace kiln::codegen {

using loop::Bound;
using loop::DimSet;
using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using Kind = loop::Expr::Kind;

namespace {
constexpr size_t kMaxExprs = 2048;
}

Error refuse(std::string reason) { return {ErrorCode::kUnsupported, std::move(reason)}; }

ExprWriter::ExprWriter(std::vector<loop::Dim> dims) {
  kernel.dims = std::move(dims);
  for (size_t d = 0; d < kernel.dims.size(); ++d) {
    if (kernel.dims[d].reduced && kernel.dims[d].extent != 1) reduced_ |= DimSet{1} << d;
  }
}

Result<ExprId> ExprWriter::emit(Expr expr) {
  if (kernel.exprs.size() >= kMaxExprs) {
    return refuse("the body expands to more than " + std::to_string(kMaxExprs) + " exprs");
  }
  const auto same = std::ranges::find(kernel.exprs, expr);
  if (same != kernel.exprs.end()) return static_cast<ExprId>(same - kernel.exprs.begin());
  DimSet varying = loop::dims_of(expr.map);
  for (const Bound& bound : expr.bounds) varying |= loop::dims_of(bound.map);
  for (const auto& gather : expr.map.gathers) varying |= varying_[gather.index];
  for (const ExprId arg : expr.args) varying |= varying_[arg];
  if (expr.kind == Kind::kReduce) varying &= ~reduced_;
  kernel.exprs.push_back(std::move(expr));
  varying_.push_back(varying);
  return static_cast<ExprId>(kernel.exprs.size() - 1);
}

Result<ExprId> ExprWriter::constant(DType dtype, uint64_t bits) {
  Expr expr;
  expr.dtype = dtype;
  expr.constant = bits;
  return emit(std::move(expr));
}

Result<ExprId> ExprWriter::iota(const IndexMap& map) {
  if (!map.gathers.empty()) return refuse("a gathered index is compared with a bound");
  Expr expr;
  expr.kind = Kind::kIota;
  expr.dtype = DType::kI64;
  expr.map = map;
  return emit(std::move(expr));
}

Result<ExprId> ExprWriter::apply(ScalarFn fn, DType dtype, std::vector<ExprId> args) {
  Expr expr;
  expr.kind = Kind::kApply;
  expr.fn = fn;
  expr.dtype = dtype;
  expr.args = std::move(args);
  return emit(std::move(expr));
}

Result<ExprId> ExprWriter::compare(ScalarFn fn, const IndexMap& map, int64_t limit) {
  KILN_ASSIGN_OR_RETURN(const ExprId index, iota(map));
  KILN_ASSIGN_OR_RETURN(const ExprId other, constant(DType::kI64, static_cast<uint64_t>(limit)));
  return apply(fn, DType::kBool, {index, other});
}

DimSet ExprWriter::varying(const IndexMap& map) const {
  DimSet set = loop::dims_of(map);
  for (const auto& gather : map.gathers) set |= varying_[gather.index];
  return set;
}

}  // namespace kiln::codegen
