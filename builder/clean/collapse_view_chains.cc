#include "builder/clean/collapse_view_chains.h"

#include <algorithm>

#include "builder/clean/rewrite.h"
#include "builder/clean/view_digits.h"

namespace kiln::clean {
namespace {

bool is_view(const Graph& graph, ValueId value) {
  return ir::producer_as<ir::Reshape>(graph, value) || ir::producer_as<ir::Transpose>(graph, value);
}

// Applies the node's view to the digits; false where digits cannot follow.
bool follow(ViewDigits& digits, const ir::Op& op) {
  if (const auto* transpose = std::get_if<ir::Transpose>(&op)) {
    digits.transpose(transpose->perm);
    return true;
  }
  return digits.reshape(std::get<ir::Reshape>(op).shape);
}

// The shortest chain for the views from `source` on; nullopt where digits cannot follow them.
std::optional<std::vector<ir::Op>> shortest(const Graph& graph, ValueId source,
                                            std::span<const NodeId> views) {
  ViewDigits digits(graph.type(source).shape);
  for (NodeId id : views) {
    if (!follow(digits, graph.node(id).op)) return std::nullopt;
  }
  return digits.shortest_chain();
}

// Reshape of a reshape: digits may not be able to follow, but only the last shape counts.
Result<ValueId> join_reshapes(Site& site) {
  const auto* reshape = site.op<ir::Reshape>();
  if (!reshape || !ir::producer_as<ir::Reshape>(site.graph, site.input(0))) return kNoValue;
  const ValueId source = ir::operand(site.graph, site.input(0), 0);
  if (site.graph.type(source) == site.type()) return source;
  return site.emit(*reshape, {source});
}

Result<ValueId> collapse(Site& site) {
  if (!is_view(site.graph, site.result()) || site.type().elements() == 0) return kNoValue;
  std::vector<NodeId> chain;  // this node first
  for (ValueId at = site.result(); is_view(site.graph, at); at = ir::operand(site.graph, at, 0)) {
    chain.push_back(site.graph.value(at).producer);
  }
  std::reverse(chain.begin(), chain.end());
  // The longest tail of the chain that gets shorter; views before it stay.
  for (std::span<const NodeId> tail = chain; !tail.empty(); tail = tail.subspan(1)) {
    ValueId value = site.graph.node(tail.front()).inputs[0];
    const auto ops = shortest(site.graph, value, tail);
    const bool turns_into_reshape = ops && ops->size() == 1 && tail.size() == 1 &&
                                    site.op<ir::Transpose>() &&
                                    std::holds_alternative<ir::Reshape>(ops->front());
    if (!ops || (ops->size() >= tail.size() && !turns_into_reshape)) continue;
    for (const ir::Op& op : *ops) {
      KILN_ASSIGN_OR_RETURN(value, site.emit(op, {value}));
    }
    return value;
  }
  return kNoValue;
}

}  // namespace

Result<bool> collapse_view_chains(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {join_reshapes, collapse};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
