#include "builder/codegen/cuda/lane_motion.h"

#include <algorithm>
#include <optional>
#include <span>

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using loop::MapTerm;
using Kind = loop::Expr::Kind;

class LaneWalk {
 public:
  LaneWalk(const KernelFacts& facts, const Lanes& lanes) : facts_(facts), lanes_(lanes) {}

  // What a step to the next lane adds; nullopt if that differs between lanes.
  std::optional<int64_t> step(const IndexMap& map) const {
    int64_t step = 0;
    for (const MapTerm& term : map.terms) {
      if (!moves(term)) continue;
      if (term.divisor % lanes_.count == 0) continue;
      if (term.divisor != 1) return std::nullopt;
      if (term.modulus != 0 && term.modulus % lanes_.count != 0) return std::nullopt;
      step += term.stride;
    }
    return step;
  }

  // Whether the map without its offset is a multiple of the lanes' count at the first lane.
  bool starts_aligned(const IndexMap& map) const {
    const auto divides = [&](int64_t stride) { return stride % lanes_.count == 0; };
    const bool terms = std::ranges::all_of(map.terms, [&](const MapTerm& term) {
      const bool lane_itself = moves(term) && term.divisor == 1;
      return lane_itself || divides(term.stride) || loop::term_extent(term, facts_.kernel) <= 1;
    });
    return terms &&
           std::ranges::all_of(map.gathers, [&](auto& gather) { return divides(gather.stride); });
  }

  bool is_packed(const IndexMap& map) const {
    return step(map) == 1 && starts_aligned(map) && map.offset % lanes_.count == 0;
  }

  // Whether the bound holds for all lanes or for none.
  bool is_shared(const loop::Bound& bound) const {
    const auto moved = step(bound.map);
    if (moved == 0) return true;
    if (moved != 1 || !starts_aligned(bound.map)) return false;
    const auto range = loop::range_of(bound.map, facts_.kernel);
    const auto on_boundary = [&](int64_t limit) {
      return (limit - bound.map.offset) % lanes_.count == 0;
    };
    const bool low = range && range->low >= bound.low;
    const bool high = range && range->high < bound.high;
    return (low || on_boundary(bound.low)) && (high || on_boundary(bound.high));
  }

  // Whether the test of a position against a limit has one result for all lanes, though the
  // position moves: the limit lies on a boundary of theirs.
  bool is_shared_test(const Expr& e) const {
    if (e.kind != Kind::kApply || e.args.size() != 2) return false;
    if (e.fn != ScalarFn::kLess && e.fn != ScalarFn::kGreaterEqual) return false;
    const Expr &position = facts_.expr(e.args[0]), &limit = facts_.expr(e.args[1]);
    if (position.kind != Kind::kIota || limit.kind != Kind::kConstant) return false;
    if (position.dtype != DType::kI64 || limit.dtype != DType::kI64) return false;
    const auto distance = static_cast<int64_t>(limit.constant) - position.map.offset;
    return step(position.map) == 1 && starts_aligned(position.map) && distance % lanes_.count == 0;
  }

 private:
  bool moves(const MapTerm& term) const {
    return term.dim == lanes_.dim && term.stride != 0 && loop::term_extent(term, facts_.kernel) > 1;
  }

  const KernelFacts& facts_;
  const Lanes& lanes_;
};

}  // namespace

namespace {

// One of two packs, the same for all lanes.
bool is_choice_of_packs(const KernelFacts& facts, const Expr& e,
                        const std::vector<Motion>& motions) {
  if (e.kind != Kind::kApply || e.fn != ScalarFn::kWhere || motions[e.args[0]] != Motion::kStill) {
    return false;
  }
  return std::ranges::all_of(std::span(e.args).subspan(1), [&](ExprId arg) {
    const Expr& value = facts.expr(arg);
    return motions[arg] == Motion::kPacked && value.dtype == e.dtype;
  });
}

}  // namespace

std::vector<Motion> motions(const KernelFacts& facts, const Lanes& lanes) {
  std::vector<Motion> result(facts.kernel.exprs.size(), Motion::kStill);
  if (lanes.count == 1) return result;
  const LaneWalk walk(facts, lanes);
  for (ExprId id = 0; id < result.size(); ++id) {
    const Expr& e = facts.expr(id);
    const bool operands_still = std::ranges::all_of(
        facts.operands(id), [&](ExprId operand) { return result[operand] == Motion::kStill; });
    if (e.kind == Kind::kReduce && contains(facts.reduced, lanes.dim)) continue;
    const bool access = e.kind == Kind::kLoad || e.kind == Kind::kStore;
    const bool gathers_still = e.kind == Kind::kStore || operands_still;
    const bool shared =
        std::ranges::all_of(e.bounds, [&](auto& bound) { return walk.is_shared(bound); });
    if ((operands_still && shared && walk.step(e.map) == 0) || walk.is_shared_test(e))
      result[id] = Motion::kStill;
    else if (is_choice_of_packs(facts, e, result))
      result[id] = Motion::kPacked;
    else if (access && gathers_still && shared && walk.is_packed(e.map))
      result[id] = Motion::kPacked;
    else
      result[id] = Motion::kScattered;
  }
  return result;
}

}  // namespace kiln::codegen
