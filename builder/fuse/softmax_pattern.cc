#include "builder/fuse/softmax_pattern.h"

#include "builder/clean/constant_value.h"
#include "builder/ir/match.h"

namespace kiln::fuse {
namespace {

using ir::Graph;
using ir::made_by;
using ir::operand;
using ir::ValueId;

bool used_times(const Graph& graph, ValueId value, size_t times) {
  return graph.value(value).uses.size() == times && !graph.is_output(value);
}

// A reduction of `of` by `fn` over the last axis, kept.
bool reduces_last_axis(const Graph& graph, ValueId value, ReduceFn fn, ValueId of) {
  if (!made_by(graph, value, fn) || operand(graph, value, 0) != of) return false;
  const auto* reduce = ir::producer_as<ir::Reduce>(graph, value);
  return reduce->keep_dims && reduce->axes == std::vector<int64_t>{graph.type(of).rank() - 1} &&
         ir::used_once(graph, value);
}

ValueId strip_cast(const Graph& graph, ValueId value) {
  const auto* cast = ir::producer_as<ir::Cast>(graph, value);
  if (!cast || !is_float(cast->to)) return value;
  const ValueId source = operand(graph, value, 0);
  return is_float(graph.type(source).dtype) ? source : value;
}

// y of where(is_nan(y), 0, y) or where(!is_nan(y), y, 0); `value` itself without a guard.
ValueId strip_guard(const Graph& graph, ValueId value) {
  if (!made_by(graph, value, ScalarFn::kWhere)) return value;
  ValueId condition = operand(graph, value, 0);
  if (!ir::used_once(graph, condition)) return value;
  const bool keeps = made_by(graph, condition, ScalarFn::kNot);
  if (keeps) condition = operand(graph, condition, 0);
  const ValueId y = operand(graph, value, keeps ? 1 : 2);
  if (!made_by(graph, condition, ScalarFn::kIsNan) || operand(graph, condition, 0) != y) {
    return value;
  }
  const auto zero = clean::splat_of(graph, operand(graph, value, keeps ? 2 : 1));
  const bool between_only = used_times(graph, y, 2) && ir::used_once(graph, condition);
  return zero && *zero == 0 && between_only ? y : value;
}

}  // namespace

std::optional<SoftmaxPattern> match_softmax(const Graph& graph, ValueId result) {
  SoftmaxPattern pattern;
  ValueId at = result;
  while (true) {  // casts and guards in any order
    const ValueId unguarded = strip_guard(graph, at);
    const bool guarded = unguarded != at;
    pattern.nan_becomes_zero |= guarded;
    const ValueId below = guarded ? unguarded : strip_cast(graph, at);
    if (below == at) break;
    if (!guarded && !ir::used_once(graph, below)) return std::nullopt;
    at = below;
  }
  if (!made_by(graph, at, ScalarFn::kDiv)) return std::nullopt;
  const ValueId powers = operand(graph, at, 0);
  if (!reduces_last_axis(graph, operand(graph, at, 1), ReduceFn::kSum, powers)) return std::nullopt;
  if (!made_by(graph, powers, ScalarFn::kExp) || !used_times(graph, powers, 2)) return std::nullopt;
  const ValueId shifted = operand(graph, powers, 0);
  if (!made_by(graph, shifted, ScalarFn::kSub) || !ir::used_once(graph, shifted)) {
    return std::nullopt;
  }
  const ValueId x = operand(graph, shifted, 0);
  if (!reduces_last_axis(graph, operand(graph, shifted, 1), ReduceFn::kMax, x)) return std::nullopt;
  if (!used_times(graph, x, 2)) return std::nullopt;
  pattern.input = strip_cast(graph, x);
  if (pattern.input != x && !ir::used_once(graph, pattern.input)) return std::nullopt;
  return pattern;
}

}  // namespace kiln::fuse
