#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "formats/onnx/check_model.h"
#include "formats/onnx/walk_nodes.h"

namespace kiln::onnx {
namespace {

// Calls multiply: a few functions that each call the next one twice would fill any memory. The
// largest models in use have some tens of thousands of nodes.
constexpr int64_t kMaxInlinedNodes = 2'000'000;

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

std::string key_of(const std::string& domain, const std::string& name,
                   const std::string& overload) {
  // Names hold no control character, so keys of different functions differ.
  return domain + '\n' + name + '\n' + overload;
}

struct CallGraph {
  std::unordered_map<std::string, size_t> index;
  std::vector<std::vector<size_t>> callees;  // with repeats: one entry a call
  std::vector<int64_t> own_nodes;
};

Result<CallGraph> call_graph(const std::vector<Function>& functions) {
  CallGraph graph;
  for (const Function& function : functions) {
    const std::string key = key_of(function.domain, function.name, function.overload);
    if (!graph.index.emplace(key, graph.index.size()).second) {
      return corrupt("function '" + function.name + "' of domain '" + function.domain +
                     "' is defined twice");
    }
  }
  for (const Function& function : functions) {
    auto& callees = graph.callees.emplace_back();
    int64_t& count = graph.own_nodes.emplace_back(0);
    KILN_RETURN_IF_ERROR(walk_nodes(function.nodes, [&](const Node& node) -> Result<> {
      ++count;
      const auto callee = graph.index.find(key_of(node.domain, node.op_type, node.overload));
      if (callee != graph.index.end()) callees.push_back(callee->second);
      return Ok();
    }));
  }
  return graph;
}

// Functions ordered so that callees come first; shorter than the graph when there are cycles.
std::vector<size_t> callees_first(const CallGraph& graph) {
  const size_t size = graph.callees.size();
  std::vector<size_t> waits_for(size), order;
  std::vector<std::vector<size_t>> callers(size);
  for (size_t f = 0; f < size; ++f) {
    waits_for[f] = graph.callees[f].size();
    for (size_t callee : graph.callees[f]) callers[callee].push_back(f);
    if (waits_for[f] == 0) order.push_back(f);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t caller : callers[order[i]]) {
      if (--waits_for[caller] == 0) order.push_back(caller);
    }
  }
  return order;
}

// A function that is on a cycle, given those that are not.
size_t find_on_cycle(const CallGraph& graph, const std::vector<size_t>& ordered) {
  std::vector<bool> blocked(graph.callees.size(), true);
  for (size_t f : ordered) blocked[f] = false;
  size_t at = 0;
  while (!blocked[at]) ++at;
  // Every blocked function calls a blocked one, so the walk ends up on a cycle.
  std::vector<bool> seen(graph.callees.size(), false);
  while (!seen[at]) {
    seen[at] = true;
    for (size_t callee : graph.callees[at]) {
      if (!blocked[callee]) continue;
      at = callee;
      break;
    }
  }
  return at;
}

Result<> check_inlined_size(const Model& model, const CallGraph& graph,
                            const std::vector<size_t>& ordered) {
  std::vector<int64_t> inlined = graph.own_nodes;
  const auto too_many = [&](const std::string& where) {
    return Error{ErrorCode::kUnsupported, where + " has more than " +
                                              std::to_string(kMaxInlinedNodes) +
                                              " nodes once its function calls are inlined"};
  };
  for (size_t f : ordered) {
    for (size_t callee : graph.callees[f]) {
      inlined[f] += inlined[callee];
      if (inlined[f] > kMaxInlinedNodes) {
        return too_many("function '" + model.functions[f].name + "'");
      }
    }
  }
  int64_t total = 0;
  return walk_nodes(model.graph.nodes, [&](const Node& node) -> Result<> {
    const auto callee = graph.index.find(key_of(node.domain, node.op_type, node.overload));
    total += callee == graph.index.end() ? 1 : inlined[callee->second];
    if (total > kMaxInlinedNodes) return too_many("the graph");
    return Ok();
  });
}

Result<> check_references(const std::vector<Node>& nodes,
                          const std::unordered_set<std::string_view>& allowed, const char* where) {
  return walk_nodes(nodes, [&](const Node& node) -> Result<> {
    for (const Attribute& attribute : node.attributes) {
      if (attribute.reference.empty() || allowed.contains(attribute.reference)) continue;
      return corrupt(describe(node) + ": attribute '" + attribute.name + "' refers to attribute '" +
                     attribute.reference + "', which " + where);
    }
    return Ok();
  });
}

Result<> check_attributes(const Function& function) {
  std::unordered_set<std::string_view> declared;
  const auto declare = [&](std::string_view name) -> Result<> {
    if (declared.insert(name).second) return Ok();
    return corrupt("attribute '" + std::string(name) + "' is declared twice");
  };
  for (const std::string& name : function.attributes) KILN_RETURN_IF_ERROR(declare(name));
  for (const Attribute& attribute : function.defaults) {
    KILN_RETURN_IF_ERROR(declare(attribute.name));
    if (!attribute.reference.empty()) {
      return corrupt("attribute '" + attribute.name + "' has a reference as its default");
    }
  }
  return check_references(function.nodes, declared, "the function does not declare");
}

}  // namespace

Result<> check_functions(const Model& model) {
  KILN_RETURN_IF_ERROR(check_references(model.graph.nodes, {}, "only a function's body may do"));
  for (const Function& function : model.functions) {
    if (function.name.empty()) return corrupt("a function has no name");
    auto result = check_attributes(function);
    if (!result.ok()) {
      return std::move(result).error().context("function '" + function.name + "'");
    }
  }
  KILN_ASSIGN_OR_RETURN(const CallGraph graph, call_graph(model.functions));
  const std::vector<size_t> ordered = callees_first(graph);
  if (ordered.size() < graph.callees.size()) {
    const size_t f = find_on_cycle(graph, ordered);
    return corrupt("function '" + model.functions[f].name +
                   "' calls itself, directly or through others");
  }
  return check_inlined_size(model, graph, ordered);
}

}  // namespace kiln::onnx
