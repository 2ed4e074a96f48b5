// Visits nodes with those of their subgraphs.
#pragma once
#include <vector>

#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

// Calls visit(const Graph&) -> Result<> for each graph that the node holds; not deeper.
template <class Visit>
Result<> for_each_subgraph(const Node& node, const Visit& visit) {
  for (const Attribute& attribute : node.attributes) {
    if (const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&attribute.value)) {
      KILN_RETURN_IF_ERROR(visit(**graph));
    }
    using Graphs = std::vector<std::shared_ptr<const Graph>>;
    if (const auto* graphs = std::get_if<Graphs>(&attribute.value)) {
      for (const auto& graph : *graphs) KILN_RETURN_IF_ERROR(visit(*graph));
    }
  }
  return Ok();
}

// Calls visit(const Node&) -> Result<> for each node, outer ones first, until an error.
template <class Visit>
Result<> walk_nodes(const std::vector<Node>& nodes, const Visit& visit) {
  for (const Node& node : nodes) {
    KILN_RETURN_IF_ERROR(visit(node));
    KILN_RETURN_IF_ERROR(for_each_subgraph(
        node, [&](const Graph& graph) { return walk_nodes(graph.nodes, visit); }));
  }
  return Ok();
}

}  // namespace kiln::onnx
