#include "builder/fuse/fuse_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>

#include "builder/codegen/lower_loop.h"
#include "builder/fuse/cycle.h"
#include "builder/fuse/loop_cost.h"
#include "builder/fuse/region.h"

namespace kiln::fuse {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::Region;
using ir::ValueId;

constexpr char kRule[] = "fuse-loops";
constexpr size_t kMaxNodes = 80;     // of one body
constexpr size_t kMaxOperands = 32;  // inputs and outputs of one kernel
constexpr size_t kMaxCopies = 6;     // readers that a cheap producer is copied into
constexpr size_t kMaxNearMisses = 200;

// A producer and the readers that it would be fused into. Each reader becomes one region.
struct Plan {
  NodeId producer = ir::kNoNode;
  std::vector<NodeId> readers;
  bool keeps_producer = false;  // its result is an output of the (single) region
  double saved = 0;
};

class LoopFusion {
 public:
  LoopFusion(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    for (NodeId id : graph_.topological_order()) enqueue(id);
    bool changed = false;
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      queue_.pop();
      const auto found = plans_.find(entry.producer);
      if (found == plans_.end() || found->second.saved != entry.saved) continue;  // out of date
      const Plan plan = found->second;
      plans_.erase(found);
      if (apply(plan)) changed = true;
    }
    return changed;
  }

 private:
  struct Entry {
    double saved;
    NodeId producer;
    // Largest saving first; ties go to the node that was there first.
    bool operator<(const Entry& other) const {
      return saved != other.saved ? saved < other.saved : producer > other.producer;
    }
  };

  bool is_loop(NodeId id) const {
    return !graph_.node(id).erased && kind_of(graph_.node(id).op) == Region::Kind::kLoop;
  }

  double cost(NodeId id) {
    const auto found = costs_.find(id);
    if (found != costs_.end()) return found->second;
    return costs_[id] = loop_cost(*draft_region(graph_, {&id, 1}).body);
  }

  std::vector<NodeId> readers_of(NodeId id) const {
    std::set<NodeId> readers;
    for (ValueId output : graph_.node(id).outputs) {
      for (const ir::Use& use : graph_.value(output).uses) readers.insert(use.node);
    }
    return {readers.begin(), readers.end()};
  }

  bool any_output(NodeId id) const {
    const auto& outputs = graph_.node(id).outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](ValueId output) { return graph_.is_output(output); });
  }

  bool fits(const RegionDraft& draft) const {
    return draft.body->node_count() <= kMaxNodes &&
           draft.inputs.size() + draft.outputs.size() <= kMaxOperands;
  }

  RegionDraft draft(const Plan& plan, NodeId reader) const {
    const std::vector<NodeId> pair{plan.producer, reader};
    if (plan.keeps_producer || plan.readers.size() == 1) return draft_region(graph_, pair);
    return draft_region(graph_, {&reader, 1}, {&plan.producer, 1});
  }

  // What the plan saves; nullopt if a region would be too large.
  std::optional<double> saving(const Plan& plan) {
    double saved = cost(plan.producer);
    for (NodeId reader : plan.readers) {
      const RegionDraft merged = draft(plan, reader);
      if (!fits(merged)) return std::nullopt;
      saved += cost(reader) - loop_cost(*merged.body);
    }
    return saved;
  }

  // Fused into every reader, so that the producer's result is never written.
  std::optional<Plan> plan_into_all(NodeId producer, const std::vector<NodeId>& readers) {
    if (any_output(producer) || readers.empty() || readers.size() > kMaxCopies) return std::nullopt;
    for (NodeId reader : readers) {
      if (!is_loop(reader) || refused_.count({producer, reader})) return std::nullopt;
    }
    const bool copies = readers.size() > 1;
    if (copies && !is_cheap(*draft_region(graph_, {&producer, 1}).body)) return std::nullopt;
    Plan plan{producer, readers, false, 0};
    const auto saved = saving(plan);
    // A merge that saves nothing still leaves one region less, and may make room for others.
    if (!saved || *saved < 0) return std::nullopt;
    plan.saved = *saved;
    return plan;
  }

  // Fused with one reader; the producer's result is written for the others.
  std::optional<Plan> plan_with_one(NodeId producer, const std::vector<NodeId>& readers) {
    std::optional<Plan> best;
    for (NodeId reader : readers) {
      if (!is_loop(reader) || refused_.count({producer, reader})) continue;
      const std::vector<NodeId> pair{producer, reader};
      Plan plan{producer, {reader}, true, 0};
      const auto saved = saving(plan);
      if (!saved || *saved <= 0 || (best && *saved <= best->saved)) continue;
      if (makes_cycle(graph_, pair)) continue;
      plan.saved = *saved;
      best = plan;
    }
    return best;
  }

  void enqueue(NodeId producer) {
    plans_.erase(producer);
    if (!is_loop(producer)) return;
    const auto readers = readers_of(producer);
    auto plan = plan_into_all(producer, readers);
    if (!plan) plan = plan_with_one(producer, readers);
    if (!plan) return;
    queue_.push({plan->saved, producer});
    plans_[producer] = *plan;
  }

  // The reason why a merged body has no loop form; empty if it has one.
  std::string refusal(const RegionDraft& merged) const {
    const auto loop = lower_to_loop(*merged.body);
    return loop.ok() ? std::string() : loop.error().message;
  }

  // Regions that grow are tried again; the last reason for a pair of names is kept.
  void record_miss(NodeId producer, NodeId reader, const std::string& reason) {
    const report::NearMiss miss{graph_.node(producer).name, graph_.node(reader).name, kRule,
                                reason};
    for (report::NearMiss& known : context_.near_misses) {
      if (known.producer == miss.producer && known.consumer == miss.consumer &&
          known.rule == miss.rule) {
        known.reason = reason;
        return;
      }
    }
    if (context_.near_misses.size() < kMaxNearMisses) context_.near_misses.push_back(miss);
  }

  bool apply(const Plan& plan) {
    // Merges since the plan was made may have opened another path to the reader.
    const std::vector<NodeId> pair{plan.producer, plan.readers.front()};
    if (plan.keeps_producer && makes_cycle(graph_, pair)) {
      refused_.insert({plan.producer, plan.readers.front()});
      enqueue(plan.producer);
      return false;
    }
    for (NodeId reader : plan.readers) {
      const std::string reason = refusal(draft(plan, reader));
      if (reason.empty()) continue;
      refused_.insert({plan.producer, reader});
      if (plan.saved > 0) record_miss(plan.producer, reader, reason);
      enqueue(plan.producer);
      return false;
    }
    std::vector<NodeId> formed;
    for (NodeId reader : plan.readers) {
      const RegionDraft merged = draft(plan, reader);
      plans_.erase(reader);
      formed.push_back(form_region(graph_, merged, Region::Kind::kLoop, kRule));
    }
    // The producers of the new regions have new readers, and so have the regions themselves.
    for (NodeId region : formed) {
      enqueue(region);
      for (ValueId input : graph_.node(region).inputs) {
        const NodeId producer = graph_.value(input).producer;
        if (producer != ir::kNoNode) enqueue(producer);
      }
    }
    return true;
  }

  Graph& graph_;
  PassContext& context_;
  std::priority_queue<Entry> queue_;
  std::map<NodeId, Plan> plans_;
  std::map<NodeId, double> costs_;
  std::set<std::pair<NodeId, NodeId>> refused_;
};

}  // namespace

Result<bool> fuse_loops(Graph& graph, PassContext& context) {
  return LoopFusion(graph, context).run();
}

}  // namespace kiln::fuse
