#include "builder/precision/narrow_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kiln::precision {
namespace {

class Search {
 public:
  Search(std::span<const double> costs, double limit, const NarrowMeasures& measures)
      : costs_(costs), limit_(limit), measures_(measures) {}

  Result<NarrowChoice> run() {
    choice_.narrow.assign(costs_.size(), true);
    KILN_ASSIGN_OR_RETURN(choice_.all_narrow, measure(measures_.whole, choice_.narrow));
    choice_.damage = choice_.all_narrow;
    choice_.held = choice_.damage <= limit_;
    if (choice_.held) return std::move(choice_);
    KILN_RETURN_IF_ERROR(score());
    rank();
    KILN_RETURN_IF_ERROR(find_fewest());
    return std::move(choice_);
  }

 private:
  Result<double> measure(const DamageFn& fn, const std::vector<bool>& narrow) {
    ++choice_.measurements;
    KILN_ASSIGN_OR_RETURN(const double damage, fn(narrow));
    return std::isnan(damage) ? std::numeric_limits<double>::infinity() : damage;
  }

  Result<> score() {
    for (size_t i = 0; i < costs_.size(); ++i) {
      std::vector<bool> one(costs_.size(), false);
      one[i] = true;
      KILN_ASSIGN_OR_RETURN(const double damage, measure(measures_.screen, one));
      choice_.alone.push_back(damage);
    }
    return Ok();
  }

  void rank() {
    order_.resize(costs_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    const auto worth = [&](size_t i) { return choice_.alone[i] / costs_[i]; };
    const auto harms = [&](size_t i) { return choice_.alone[i] > limit_; };
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      if (harms(a) != harms(b)) return harms(a);
      return worth(a) != worth(b) ? worth(a) > worth(b) : a < b;
    });
    least_ = static_cast<size_t>(std::ranges::count_if(order_, harms));
  }

  std::vector<bool> without_first(size_t count) const {
    std::vector<bool> narrow(costs_.size(), true);
    for (size_t i = 0; i < count; ++i) narrow[order_[i]] = false;
    return narrow;
  }

  // Where the sum of what is left, scaled to what all did together, first falls below the limit.
  size_t predicted() const {
    const double sum = std::accumulate(choice_.alone.begin(), choice_.alone.end(), 0.0);
    double left = sum;
    size_t count = 0;
    while (count < order_.size() && left * choice_.all_narrow > limit_ * sum) {
      left -= choice_.alone[order_[count++]];
    }
    return std::isfinite(sum) && std::isfinite(choice_.all_narrow) ? count : order_.size() / 2;
  }

  // Bisects the number of items kept wide, from the predicted one outwards.
  Result<> find_fewest() {
    size_t holds = costs_.size() + 1;  // + 1: not even all of them is known to hold
    size_t next = std::clamp<size_t>(predicted(), std::max<size_t>(least_, 1), costs_.size());
    size_t fails = std::max<size_t>(least_, 1) - 1;
    for (size_t step = 1; holds - fails > 1; step *= 2) {
      KILN_ASSIGN_OR_RETURN(const double damage, measure(measures_.whole, without_first(next)));
      if (damage <= limit_) {
        holds = next;
        choice_.damage = damage;
        next = holds - fails > 2 * step ? holds - step : (holds + fails) / 2;
      } else {
        fails = next;
        if (holds > costs_.size()) choice_.damage = damage;
        const size_t most = std::min(holds, costs_.size());
        next = holds > costs_.size() || holds - fails > 2 * step ? std::min(fails + step, most)
                                                                 : (holds + fails) / 2;
      }
    }
    choice_.held = holds <= costs_.size();
    choice_.narrow = without_first(std::min(holds, costs_.size()));
    return Ok();
  }

  std::span<const double> costs_;
  double limit_;
  const NarrowMeasures& measures_;
  NarrowChoice choice_;
  std::vector<size_t> order_;
  size_t least_ = 0;  // to be kept wide in any case
};

}  // namespace

Result<NarrowChoice> search_narrow(std::span<const double> costs, double limit,
                                   const NarrowMeasures& measures) {
  return Search(costs, limit, measures).run();
}

}  // namespace kiln::precision
