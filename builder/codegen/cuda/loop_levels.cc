#include "builder/codegen/cuda/loop_levels.h"

#include <algorithm>

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

// Recomputing what costs less than this, in additions, is cheaper than a register.
constexpr int kCheap = 8;

int price_of(const Expr& e) {
  if (e.kind != Kind::kApply) return 1;
  switch (e.fn) {
    case ScalarFn::kDiv:
    case ScalarFn::kReciprocal:
    case ScalarFn::kSqrt:
      return 8;
    case ScalarFn::kExp:
    case ScalarFn::kErf:
    case ScalarFn::kTanh:
    case ScalarFn::kSigmoid:
      return 12;
    default:
      return e.fn >= ScalarFn::kLog && e.fn <= ScalarFn::kAtanh ? 20 : 1;
  }
}

class Planner {
 public:
  Planner(const KernelFacts& facts, loop::DimSet looped) : facts_(facts), looped_(looped) {}

  LoopLevels run(bool keep) {
    result_.levels.resize(facts_.levels);
    for (ExprId id = 0; id < size(); ++id) {
      const Expr& e = facts_.expr(id);
      if (!facts_.live[id] || e.kind == Kind::kConstant) continue;
      if (e.kind == Kind::kReduce)
        result_.levels[facts_.level[id] - 1].reduces.push_back(id);
      else if (e.kind == Kind::kStore)
        (stored_inside(id) ? stores_ : result_.after).push_back(id);
      else if (!facts_.varies(id, looped_))
        result_.levels[facts_.level[id]].before.push_back(id);
    }
    placed_.assign(size(), false);
    for (uint32_t l = 0; l < facts_.levels; ++l) fill_inside(l);
    if (keep) {
      find_kept();
      for (const ExprId id : result_.kept) placed_[id] = true;
      refill();
    }
    return std::move(result_);
  }

 private:
  size_t size() const { return facts_.kernel.exprs.size(); }
  bool stored_inside(ExprId id) const {
    return ((facts_.varying[id] | loop::dims_of(facts_.expr(id).map)) & looped_) != 0;
  }

  // What the level's reductions and stores need, down to what is placed already.
  void fill_inside(uint32_t l) {
    LoopLevel& level = result_.levels[l];
    std::vector<bool> needed(size());
    for (const ExprId id : level.reduces) needed[id] = true;
    for (const ExprId id : stores_) {
      if (facts_.level[id] == l) needed[id] = true;
    }
    for (auto id = static_cast<ExprId>(size()); id-- > 0;) {
      if (!needed[id]) continue;
      const Kind kind = facts_.expr(id).kind;
      const bool root = kind == Kind::kStore || facts_.level[id] == l + 1;
      const bool here =
          root || (kind != Kind::kConstant && facts_.varies(id, looped_) && !placed_[id]);
      needed[id] = here;
      if (!here) continue;
      for (const ExprId operand : facts_.operands(id)) {
        // A reduction of an earlier level is there.
        if (facts_.expr(operand).kind != Kind::kReduce) needed[operand] = true;
      }
    }
    level.inside.clear();
    for (ExprId id = 0; id < size(); ++id) {
      if (needed[id]) level.inside.push_back(id);
    }
  }

  // Each loop again, now that kept exprs are computed by the first one that needs them.
  void refill() {
    const std::vector<bool> kept = placed_;
    placed_.assign(size(), false);
    for (uint32_t l = 0; l < facts_.levels; ++l) {
      fill_inside(l);
      for (const ExprId id : result_.levels[l].inside) placed_[id] = kept[id];
    }
  }

  void find_kept() {
    std::vector<uint32_t> uses(size());
    for (const LoopLevel& level : result_.levels) {
      for (const ExprId id : level.inside) ++uses[id];
    }
    const std::vector<int> price = prices();
    std::vector<bool> kept(size());
    for (ExprId id = 0; id < size(); ++id) {
      const Expr& e = facts_.expr(id);
      if (uses[id] < 2 || e.kind == Kind::kStore || e.kind == Kind::kReduce) continue;
      if (e.kind != Kind::kLoad && price[id] >= kCheap && is_frontier(id)) kept[id] = true;
    }
    for (ExprId id = 0; id < size(); ++id) {
      const Expr& e = facts_.expr(id);
      if (e.kind != Kind::kLoad || !facts_.live[id] || !facts_.varies(id, looped_)) continue;
      // Loads of the thread's own row are begun at once, even if only a later loop needs them.
      const bool own = facts_.level[id] == 0 && facts_.varies(id, facts_.parallel);
      if (own || uses[id] >= 2) kept[id] = true;
    }
    for (ExprId id = 0; id < size(); ++id) {
      if (kept[id]) result_.kept.push_back(id);
    }
  }

  // What computing an expr takes, from loads on.
  std::vector<int> prices() const {
    std::vector<int> price(size());
    for (ExprId id = 0; id < size(); ++id) {
      const Expr& e = facts_.expr(id);
      if (e.kind == Kind::kLoad || !facts_.varies(id, looped_)) continue;
      price[id] = price_of(e);
      for (const ExprId operand : facts_.operands(id)) {
        price[id] = std::min(1000, price[id] + price[operand]);
      }
    }
    return price;
  }

  // Whether something that only a later loop computes reads it.
  bool is_frontier(ExprId id) const {
    const auto first = std::ranges::find_if(result_.levels, [&](const LoopLevel& level) {
      return std::ranges::binary_search(level.inside, id);
    });
    for (auto later = first + 1; later != result_.levels.end(); ++later) {
      for (const ExprId reader : later->inside) {
        const std::vector<ExprId> operands = facts_.operands(reader);
        if (std::ranges::find(operands, id) == operands.end()) continue;
        if (!std::ranges::binary_search(first->inside, reader)) return true;
      }
    }
    return false;
  }

  const KernelFacts& facts_;
  loop::DimSet looped_;
  LoopLevels result_;
  std::vector<ExprId> stores_;
  std::vector<bool> placed_;
};

}  // namespace

LoopLevels find_loop_levels(const KernelFacts& facts, loop::DimSet looped, bool keep) {
  return Planner(facts, looped).run(keep);
}

}  // namespace kiln::codegen
