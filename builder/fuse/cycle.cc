#include "builder/fuse/cycle.h"

#include <set>
#include <vector>

namespace kiln::fuse {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

std::vector<NodeId> readers_of(const Graph& graph, NodeId id) {
  std::vector<NodeId> readers;
  for (ValueId output : graph.node(id).outputs) {
    for (const ir::Use& use : graph.value(output).uses) readers.push_back(use.node);
  }
  return readers;
}

std::vector<NodeId> producers_of(const Graph& graph, NodeId id) {
  std::vector<NodeId> producers;
  for (ValueId input : graph.node(id).inputs) {
    const NodeId producer = graph.value(input).producer;
    if (producer != ir::kNoNode) producers.push_back(producer);
  }
  return producers;
}

// The nodes outside of a group that its members lead to, in one direction. A path out of the group
// and back is found from both ends in step, which costs as little as the end with fewer nodes:
// mostly a few, where all that is downstream may be the whole model.
class Reach {
 public:
  using Neighbours = std::vector<NodeId> (*)(const Graph&, NodeId);

  Reach(const Graph& graph, Neighbours neighbours, const std::set<NodeId>& group)
      : graph_(graph), neighbours_(neighbours), group_(group) {
    std::vector<NodeId> ends;
    for (NodeId member : group) {
      bool end = true;
      for (NodeId id : neighbours_(graph_, member)) end = end && !group.count(id);
      if (end) ends.push_back(member);
    }
    for (NodeId member : group) {
      // All members lead to an only end, so nothing behind it leads back.
      if (ends.size() == 1 && member == ends[0]) continue;
      for (NodeId id : neighbours_(graph_, member)) {
        if (!group.count(id)) add(id);
      }
    }
  }

  bool done() const { return next_ == found_.size(); }

  // Goes on from the nearest node; true if that leads into the group or to what `other` found.
  bool meets_in_step(const Reach& other) {
    if (done()) return false;
    for (NodeId id : neighbours_(graph_, found_[next_++])) {
      if (group_.count(id) || other.seen_.count(id)) return true;
      add(id);
    }
    return false;
  }

 private:
  void add(NodeId id) {
    if (seen_.insert(id).second) found_.push_back(id);
  }

  const Graph& graph_;
  Neighbours neighbours_;
  const std::set<NodeId>& group_;
  std::set<NodeId> seen_;
  std::vector<NodeId> found_;  // the nearest first
  size_t next_ = 0;            // of `found_`, to go on from
};

}  // namespace

bool makes_cycle(const Graph& graph, std::span<const NodeId> members) {
  const std::set<NodeId> group(members.begin(), members.end());
  Reach after(graph, readers_of, group), before(graph, producers_of, group);
  while (!after.done() && !before.done()) {
    if (after.meets_in_step(before) || before.meets_in_step(after)) return true;
  }
  return false;
}

}  // namespace kiln::fuse
