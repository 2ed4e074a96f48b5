#include "builder/clean/simplify_algebra.h"

#include <cmath>
#include <limits>

#include "builder/clean/constant_value.h"
#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const ir::Pointwise* pointwise(Site& site) { return site.op<ir::Pointwise>(); }

bool is_splat(Site& site, size_t i, double wanted) {
  const auto value = splat_of(site.graph, site.input(i));
  return value && *value == wanted && std::signbit(*value) == std::signbit(wanted);
}

// Operand i in place of the result, at the result's shape.
Result<ValueId> keep(Site& site, size_t i) {
  return site.broadcast_to(site.input(i), site.type().shape);
}

// x where the other operand of a commutative function is `neutral`.
Result<ValueId> drop_neutral(Site& site, double neutral) {
  for (size_t i : {0, 1}) {
    if (is_splat(site, i, neutral)) return keep(site, 1 - i);
  }
  return kNoValue;
}

Result<ValueId> simplify_unary(Site& site, ScalarFn fn) {
  const ValueId x = site.input(0);
  if (fn == ScalarFn::kIdentity) return x;
  const bool involution = fn == ScalarFn::kNeg || fn == ScalarFn::kNot || fn == ScalarFn::kBitNot;
  if (involution && ir::made_by(site.graph, x, fn)) return ir::operand(site.graph, x, 0);
  const bool idempotent = fn == ScalarFn::kAbs || fn == ScalarFn::kFloor || fn == ScalarFn::kCeil ||
                          fn == ScalarFn::kRound;
  if (idempotent && ir::made_by(site.graph, x, fn)) return x;
  if (fn == ScalarFn::kAbs && ir::made_by(site.graph, x, ScalarFn::kNeg)) {
    return site.emit(ir::Pointwise{fn}, {ir::operand(site.graph, x, 0)});
  }
  return kNoValue;
}

Result<ValueId> simplify_sum(Site& site, ScalarFn fn) {
  const bool exact_zero = !is_float(site.type().dtype);
  if (fn == ScalarFn::kSub) return is_splat(site, 1, 0.0) ? keep(site, 0) : kNoValue;
  // On floats only -0 is neutral: +0 would turn a -0 into +0.
  return drop_neutral(site, exact_zero ? 0.0 : -0.0);
}

Result<ValueId> simplify_pow(Site& site) {
  const auto exponent = splat_of(site.graph, site.input(1));
  const bool keeps_shape = site.graph.type(site.input(0)).shape == site.type().shape;
  if (!exponent || !keeps_shape) return kNoValue;
  const ValueId x = site.input(0);
  if (*exponent == 1) return x;
  if (*exponent == 2) return site.emit(ir::Pointwise{ScalarFn::kMul}, {x, x});
  if (!is_float(site.type().dtype)) return kNoValue;
  if (*exponent == 3) {
    KILN_ASSIGN_OR_RETURN(const ValueId square, site.emit(ir::Pointwise{ScalarFn::kMul}, {x, x}));
    return site.emit(ir::Pointwise{ScalarFn::kMul}, {square, x});
  }
  if (*exponent == -1) return site.emit(ir::Pointwise{ScalarFn::kReciprocal}, {x});
  return kNoValue;
}

Result<ValueId> simplify_where(Site& site) {
  if (site.input(1) == site.input(2)) return keep(site, 1);
  const auto condition = splat_of(site.graph, site.input(0));
  if (condition) return keep(site, *condition != 0 ? 1 : 2);
  if (!ir::made_by(site.graph, site.input(0), ScalarFn::kNot)) return kNoValue;
  return site.emit(ir::Pointwise{ScalarFn::kWhere},
                   {ir::operand(site.graph, site.input(0), 0), site.input(2), site.input(1)});
}

Result<ValueId> simplify(Site& site) {
  const auto* op = pointwise(site);
  if (!op) return kNoValue;
  if (arity(op->fn) == 1) return simplify_unary(site, op->fn);
  const bool floats = is_float(site.type().dtype);
  switch (op->fn) {
    case ScalarFn::kAdd:
    case ScalarFn::kSub:
      return simplify_sum(site, op->fn);
    case ScalarFn::kMul:
      return drop_neutral(site, 1.0);
    case ScalarFn::kDiv:
      return is_splat(site, 1, 1.0) ? keep(site, 0) : kNoValue;
    case ScalarFn::kPow:
      return simplify_pow(site);
    case ScalarFn::kMax:
      return floats ? drop_neutral(site, -kInfinity) : kNoValue;
    case ScalarFn::kMin:
      return floats ? drop_neutral(site, kInfinity) : kNoValue;
    case ScalarFn::kAnd:
      return drop_neutral(site, 1.0);
    case ScalarFn::kOr:
      return drop_neutral(site, 0.0);
    case ScalarFn::kWhere:
      return simplify_where(site);
    default:
      return kNoValue;
  }
}

// Pointwise nodes broadcast by themselves.
Result<ValueId> drop_broadcast_operands(Site& site) {
  const auto* op = pointwise(site);
  if (!op || arity(op->fn) == 1) return kNoValue;
  const auto old_inputs = site.node().inputs;
  auto inputs = old_inputs;
  for (ValueId& input : inputs) {
    if (!ir::producer_as<ir::Broadcast>(site.graph, input)) continue;
    const ValueId wide = input;
    input = ir::operand(site.graph, wide, 0);
    std::vector<TensorType> types;
    for (ValueId id : inputs) types.push_back(site.graph.type(id));
    const auto inferred = ir::infer_types(*op, types);
    if (!inferred.ok() || inferred->front() != site.type()) input = wide;
  }
  return inputs == old_inputs ? Result<ValueId>(kNoValue) : site.emit(*op, std::move(inputs));
}

}  // namespace

Result<bool> simplify_algebra(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {simplify, drop_broadcast_operands};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
