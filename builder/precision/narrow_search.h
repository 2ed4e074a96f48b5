// Mixed precision by measured sensitivity: which items of a model must stay wide so that the
// others may be narrow and the whole keeps its quality. A pure algorithm over injected measuring.
//
// After AutoQuantize's and Intel's (arXiv 2505.13060) one-at-a-time scores: damage is additive
// to first order, since roundings are independent, so items are kept wide in the order of damage
// saved per cost. How many is found by measuring, not from the sum: roundings do interact.
// First come those that alone do more than all may: others may make up for it on what is measured
// with, but not on other data.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "formats/result.h"

namespace kiln::precision {

// What the model loses, 1 - cosine, when exactly these items are narrow.
using DamageFn = std::function<Result<double>(const std::vector<bool>& narrow)>;

struct NarrowMeasures {
  DamageFn whole;   // on everything there is to measure with: decides
  DamageFn screen;  // may use less: ranks the items; called after `whole` of all narrow
};

struct NarrowChoice {
  std::vector<bool> narrow;   // by item
  std::vector<double> alone;  // by item: its damage when it alone is narrow; empty if not measured
  double all_narrow = 0;      // damage of all items narrow
  double damage = 0;          // of the choice
  bool held = false;          // damage <= limit; if not, every item is wide
  int measurements = 0;
};

// costs[i] > 0: what keeping item i wide costs, in any one unit. Measures each item at most once
// alone, and the whole about log2(items) times. NaN counts as infinite damage.
Result<NarrowChoice> search_narrow(std::span<const double> costs, double limit,
                                   const NarrowMeasures& measures);

}  // namespace kiln::precision
