#include "builder/precision/hold_quality.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "builder/precision/narrow_search.h"
#include "builder/tactics/region_work.h"

namespace kiln::precision {
namespace {

using ir::Graph;
using ir::NodeId;

// Neighbouring regions are one item in models of more.
constexpr size_t kMostItems = 128;
// Work in f32 that costs as much as moving a byte does, by order of magnitude on any device.
constexpr double kFlopsPerByte = 16;

using Item = std::vector<NodeId>;  // one after the other

// Every region that would be narrow if nothing kept it.
std::vector<Item> items_of(const Graph& graph, DType narrow) {
  const Storage storage = choose_storage(graph, {narrow, DType::kF32});
  std::vector<NodeId> narrowed;
  for (NodeId id : graph.topological_order()) {
    if (is_narrowed(graph, storage, id, narrow)) narrowed.push_back(id);
  }
  const size_t length = (narrowed.size() + kMostItems - 1) / kMostItems;
  std::vector<Item> items;
  for (size_t i = 0; i < narrowed.size(); ++i) {
    if (i % length == 0) items.emplace_back();
    items.back().push_back(narrowed[i]);
  }
  return items;
}

double cost_of(const Graph& graph, const Item& item) {
  double cost = 1;
  for (NodeId id : item) {
    const RegionWork work = region_work(*std::get<ir::Region>(graph.node(id).op).body);
    cost += static_cast<double>(work.bytes_read + work.bytes_written) +
            static_cast<double>(work.flops) / kFlopsPerByte;
  }
  return cost;
}

std::string text_of(const char* format, double number) {
  char text[32];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

class Holder {
 public:
  Holder(const Graph& graph, const QualityGoal& goal, DamageMeter& meter,
         const std::function<void(double)>& progress)
      : graph_(graph),
        goal_(goal),
        meter_(meter),
        progress_(progress),
        items_(items_of(graph, goal.narrow)) {}

  Result<HeldQuality> run() {
    HeldQuality held;
    held.damage = goal_.damage;
    if (items_.empty()) return held;
    std::vector<double> costs;
    for (const Item& item : items_) costs.push_back(cost_of(graph_, item));
    const NarrowMeasures measures{
        [&](const std::vector<bool>& narrow) {
          const bool all = std::count(narrow.begin(), narrow.end(), false) == 0;
          return meter_.damage(reasons(narrow), all ? 1 : goal_.damage);
        },
        [&](const std::vector<bool>& narrow) {
          if (progress_) progress_(++screened_ / (static_cast<double>(items_.size()) + 1));
          return meter_.damage_on_worst(reasons(narrow));
        }};
    KILN_ASSIGN_OR_RETURN(choice_, search_narrow(costs, goal_.damage, measures));
    if (choice_.damage > goal_.most_damage) return refusal();
    describe(held);
    return held;
  }

 private:
  // The meter's `keep` for the items that are not narrow.
  std::vector<std::string> reasons(const std::vector<bool>& narrow) const {
    std::vector<std::string> keep(graph_.node_count());
    for (size_t i = 0; i < items_.size(); ++i) {
      for (NodeId id : items_[i]) keep[index_of(id)] = narrow[i] ? "" : "measured";
    }
    return keep;
  }

  std::string reason_of(size_t item) const {
    const std::string others = items_[item].size() > 1 ? " with its neighbours" : "";
    return "sensitive: narrow alone" + others + " it takes " +
           text_of("%.2g", choice_.alone[item]) + " off the cosine, all regions together " +
           text_of("%.2g", choice_.all_narrow);
  }

  void describe(HeldQuality& held) const {
    if (choice_.alone.empty()) return;
    size_t kept = 0, regions = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      regions += items_[i].size();
      kept += choice_.narrow[i] ? 0 : items_[i].size();
      for (NodeId id : items_[i]) {
        RegionQuality& quality = held.regions[graph_.node(id).name];
        quality.damage = choice_.alone[i];
        if (!choice_.narrow[i]) quality.keep = reason_of(i);
      }
    }
    held.note = std::string(to_string(goal_.narrow)) + " throughout would have a cosine of " +
                text_of("%.5f", 1 - choice_.all_narrow) + ": the " + std::to_string(kept) + " of " +
                std::to_string(regions) + " regions that harm it most for their cost stay f32, " +
                text_of("%.5f", 1 - choice_.damage) + " then (" +
                std::to_string(choice_.measurements) + " measurements)";
  }

  Error refusal() const {
    constexpr size_t kNamed = 3;
    std::vector<size_t> order(items_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto& alone = choice_.alone;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return alone[a] != alone[b] ? alone[a] > alone[b] : a < b;
    });
    std::string worst;
    for (size_t i = 0; i < std::min(kNamed, order.size()); ++i) {
      worst += (i ? ", '" : "'") + graph_.node(items_[order[i]].front()).name + "' (" +
               text_of("%.2g", choice_.alone[order[i]]) + ")";
    }
    const std::string dtype(to_string(goal_.narrow));
    return {ErrorCode::kVerification,
            dtype + " does not hold a cosine of " + text_of("%.4f", 1 - goal_.most_damage) +
                ": found " + text_of("%.5f", 1 - choice_.all_narrow) + ", and " +
                text_of("%.5f", 1 - choice_.damage) +
                " with every region in f32; most sensitive are " + worst +
                "; build with --fp32, without --io-fp16, or give typical inputs with "
                "--verify-data"};
  }

  const Graph& graph_;
  const QualityGoal& goal_;
  DamageMeter& meter_;
  const std::function<void(double)>& progress_;
  std::vector<Item> items_;
  NarrowChoice choice_;
  double screened_ = 0;
};

}  // namespace

Result<HeldQuality> hold_quality(const Graph& graph, const QualityGoal& goal, DamageMeter& meter,
                                 const std::function<void(double)>& progress) {
  return Holder(graph, goal, meter, progress).run();
}

}  // namespace kiln::precision
