#include "builder/fuse/fuse_epilogues.h"

#include <algorithm>
#include <set>

#include "builder/codegen/lower_loop.h"
#include "builder/fuse/cycle.h"
#include "builder/fuse/region.h"
#include "builder/ir/match.h"

namespace kiln::fuse {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

constexpr size_t kMaxNodes = 40;  // of one epilogue
constexpr size_t kMaxInputs = 12;

// Nodes that compute one element of the result from one element of the anchor's.
bool is_elementwise(const ir::Op& op) {
  return std::holds_alternative<ir::Pointwise>(op) || std::holds_alternative<ir::Cast>(op) ||
         std::holds_alternative<ir::Reshape>(op);
}

// The anchor and what has joined it so far. Of a MatMul's rows either half may be read by itself
// (gate and up of a gated linear unit): then what follows has half the elements.
class Growth {
 public:
  Growth(const Graph& graph, NodeId anchor)
      : graph_(graph),
        elements_(graph.type(graph.result(anchor)).elements()),
        may_halve_(std::holds_alternative<ir::MatMul>(graph.node(anchor).op)),
        nodes_{anchor} {}

  // The longest run of nodes that leaves one value for the rest of the graph to read.
  std::vector<NodeId> grow() {
    std::vector<NodeId> best = nodes_;
    while (nodes_.size() < kMaxNodes) {
      const NodeId next = next_node();
      if (next == ir::kNoNode) break;
      nodes_.push_back(next);
      if (live_results() == 1 && inputs() <= kMaxInputs) best = nodes_;
    }
    if (best.size() == 1 && nodes_.size() > 1) {
      refuse(nodes_[1], "it and other readers of the product leave more than one result");
    }
    while (best.size() > 1 && only_moves(graph_.node(best.back()).op)) {
      best.pop_back();  // better left to its reader
    }
    return best;
  }

  // The reader that growth ended at, and why; kNoNode if there was none.
  NodeId refused = ir::kNoNode;
  std::string refusal;

 private:
  bool has(NodeId id) const { return std::find(nodes_.begin(), nodes_.end(), id) != nodes_.end(); }

  // A reader of a member that can join: the one with the smallest id, so that ties are fixed.
  NodeId next_node() {
    std::set<NodeId> readers;
    for (NodeId id : nodes_) {
      for (const ir::Use& use : graph_.value(graph_.result(id)).uses) {
        if (!has(use.node)) readers.insert(use.node);
      }
    }
    for (NodeId id : readers) {
      if (joins(id)) return id;
    }
    return ir::kNoNode;
  }

  void refuse(NodeId id, const char* why) {
    refused = id;
    refusal = why;
  }

  bool joins(NodeId id) {
    const ir::Node& node = graph_.node(id);
    // Another anchor is no near miss.
    if (kind_of(node.op) != ir::Region::Kind::kLoop) return false;
    const bool halves = takes_half(node);
    if (!is_elementwise(node.op) && !halves) {
      refuse(id, "it is not element by element");
      return false;
    }
    const int64_t wanted = halves || reads_half(node) ? elements_ / 2 : elements_;
    if (graph_.type(graph_.result(id)).elements() != wanted) {
      refuse(id, "it has another number of elements");
      return false;
    }
    std::vector<NodeId> group = nodes_;
    group.push_back(id);
    if (makes_cycle(graph_, group)) {
      refuse(id, "it needs a value that is computed from this one elsewhere");
      return false;
    }
    return true;
  }

  static bool only_moves(const ir::Op& op) {
    return std::holds_alternative<ir::Reshape>(op) || std::holds_alternative<ir::Slice>(op);
  }

  // Either half of all rows.
  bool takes_half(const ir::Node& node) const {
    const auto* slice = std::get_if<ir::Slice>(&node.op);
    if (slice == nullptr || !may_halve_) return false;
    const Shape& from = graph_.type(node.inputs[0]).shape;
    if (from.empty() || element_count(from) != elements_ || from.back() % 2 != 0) return false;
    const size_t last = from.size() - 1;
    for (size_t axis = 0; axis < last; ++axis) {
      if (slice->sizes[axis] != from[axis]) return false;
    }
    const int64_t half = from[last] / 2, start = slice->starts[last];
    return slice->sizes[last] == half && slice->steps[last] == 1 && (start == 0 || start == half);
  }

  bool reads_half(const ir::Node& node) const {
    return std::ranges::any_of(node.inputs, [&](ValueId input) {
      const NodeId producer = graph_.value(input).producer;
      return producer != ir::kNoNode && has(producer) && graph_.type(input).elements() != elements_;
    });
  }

  size_t live_results() const {
    size_t live = 0;
    for (NodeId id : nodes_) {
      const ValueId result = graph_.result(id);
      const auto& uses = graph_.value(result).uses;
      live +=
          graph_.is_output(result) ||
          std::any_of(uses.begin(), uses.end(), [&](const ir::Use& use) { return !has(use.node); });
    }
    return live;
  }

  size_t inputs() const {
    std::set<ValueId> outside;
    for (NodeId id : nodes_) {
      for (ValueId input : graph_.node(id).inputs) {
        const NodeId producer = graph_.value(input).producer;
        const bool scalar = graph_.value(input).constant && graph_.type(input).elements() == 1;
        if (!scalar && (producer == ir::kNoNode || !has(producer))) outside.insert(input);
      }
    }
    return outside.size();
  }

  const Graph& graph_;
  int64_t elements_;
  bool may_halve_;
  std::vector<NodeId> nodes_;
};

// The epilogue alone must have a loop form: what libraries cannot do runs as a generated loop.
std::string refusal_of_loop(const Graph& graph, std::span<const NodeId> epilogue) {
  const RegionDraft draft = draft_region(graph, epilogue);
  const auto loop = lower_to_loop(*draft.body);
  return loop.ok() ? std::string() : loop.error().message;
}

bool fuse_behind(Graph& graph, NodeId anchor, const char* rule, PassContext& context) {
  Growth growth(graph, anchor);
  std::vector<NodeId> nodes = growth.grow();
  const std::string name = graph.node(anchor).name;
  if (nodes.size() > 1) {
    const std::string refusal = refusal_of_loop(graph, std::span(nodes).subspan(1));
    if (refusal.empty()) {
      form_region(graph, draft_region(graph, nodes), kind_of(graph.node(anchor).op), rule);
      return true;
    }
    context.near_misses.push_back({name, graph.node(nodes.back()).name, rule, refusal});
  } else if (growth.refused != ir::kNoNode) {
    context.near_misses.push_back({name, graph.node(growth.refused).name, rule, growth.refusal});
  }
  return false;
}

bool fuse_all(Graph& graph, ir::Region::Kind kind, const char* rule, PassContext& context) {
  bool changed = false;
  // Later anchors first: of two that meet in an add, the one that is ready last takes it, so that
  // the other's result is there to be read.
  auto order = graph.topological_order();
  std::reverse(order.begin(), order.end());
  for (NodeId id : order) {
    const ir::Node& node = graph.node(id);
    if (node.erased || std::holds_alternative<ir::Region>(node.op)) continue;
    if (kind_of(node.op) == kind) changed |= fuse_behind(graph, id, rule, context);
  }
  return changed;
}

}  // namespace

Result<bool> fuse_convolution_epilogues(Graph& graph, PassContext& context) {
  return fuse_all(graph, ir::Region::Kind::kConvolution, "fuse-convolution-epilogues", context);
}

Result<bool> fuse_contraction_epilogues(Graph& graph, PassContext& context) {
  return fuse_all(graph, ir::Region::Kind::kContraction, "fuse-contraction-epilogues", context);
}

}  // namespace kiln::fuse
