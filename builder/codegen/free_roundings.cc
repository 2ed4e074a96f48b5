#include "builder/codegen/free_roundings.h"

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

bool is_wide_float(DType dtype) { return is_float(dtype) && bits_of(dtype) >= 16; }

bool has_steps(ScalarFn fn) {
  switch (fn) {
    case ScalarFn::kFloor:
    case ScalarFn::kCeil:
    case ScalarFn::kRound:
    case ScalarFn::kSign:
    case ScalarFn::kMod:
    case ScalarFn::kFmod:
      return true;
    default:
      return false;
  }
}

// Whether argument `a` of an expr, whose own rounding is free or not, may be rounded at will.
bool passes(const Expr& e, size_t a, bool own) {
  switch (e.kind) {
    case Kind::kStore:
      return is_float(e.dtype) && bits_of(e.dtype) == 16;
    case Kind::kCast:
      return own && is_wide_float(e.dtype);
    case Kind::kReduce:
      return own && is_wide_float(e.dtype);
    case Kind::kApply:
      if (e.fn == ScalarFn::kWhere && a == 0) return false;
      return own && is_wide_float(e.dtype) && !has_steps(e.fn);
    default:
      return false;
  }
}

}  // namespace

std::vector<bool> free_roundings(const loop::LoopKernel& kernel) {
  std::vector<bool> is_free(kernel.exprs.size(), true);
  for (auto id = static_cast<ExprId>(kernel.exprs.size()); id-- > 0;) {
    const Expr& e = kernel.exprs[id];
    for (const loop::GatherTerm& gather : e.map.gathers) is_free[gather.index] = false;
    for (size_t a = 0; a < e.args.size(); ++a) {
      if (!passes(e, a, is_free[id])) is_free[e.args[a]] = false;
    }
  }
  return is_free;
}

}  // namespace kiln::codegen
