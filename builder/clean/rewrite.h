// The frame of all local rewrites: a rule looks at one node and may offer another value in place of
// the node's result.
#pragma once
#include <span>
#include <string>

#include "builder/ir/graph.h"
#include "builder/ir/match.h"

namespace kiln::clean {

using ir::Graph;
using ir::kNoValue;
using ir::NodeId;
using ir::ValueId;

// What a rule works with: the graph and the node that it looks at.
class Site {
 public:
  Site(Graph& graph, NodeId node) : graph(graph), node_(node) {}

  const ir::Node& node() const { return graph.node(node_); }
  NodeId id() const { return node_; }
  ValueId input(size_t i) const { return node().inputs[i]; }
  ValueId result() const { return graph.result(node_); }
  const TensorType& type() const { return graph.type(result()); }
  template <class T>
  const T* op() const {
    return std::get_if<T>(&node().op);
  }

  // A new node with the name and the origins of the node looked at; returns its result.
  Result<ValueId> emit(ir::Op op, std::vector<ValueId> inputs);
  // `value` itself, or a Broadcast of it.
  Result<ValueId> broadcast_to(ValueId value, const Shape& shape);

  Graph& graph;

 private:
  NodeId node_;
};

// The value to put in place of the node's only result, of the same type; kNoValue: no rewrite.
using Rule = Result<ValueId> (*)(Site&);

// Tries `rules` on every live node with one result, producers first; a node takes the first rule
// that rewrites it. True if any did. Replaced nodes are erased, and their producers as far as
// nothing else reads them.
Result<bool> rewrite_nodes(Graph& graph, std::span<const Rule> rules);

// Erases the node and, recursively, the producers that it leaves without a reader.
// REQUIRES: nothing reads the node.
void erase_with_producers(Graph& graph, NodeId node);

}  // namespace kiln::clean
