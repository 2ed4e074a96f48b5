#include <unordered_map>
#include <unordered_set>

#include "formats/onnx/check_model.h"
#include "formats/onnx/walk_nodes.h"

namespace kiln::onnx {
namespace {

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }
std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

// The values that nodes see at one point: those made so far here, then the enclosing scopes'.
struct Scope {
  // What made each value; nullptr for an input or initializer.
  std::unordered_map<std::string_view, const Node*> made;
  const Scope* outer = nullptr;

  bool sees(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->outer) {
      if (scope->made.contains(name)) return true;
    }
    return false;
  }
};

// Why `node`, number `index`, cannot read `name`.
Error explain_unmade(const std::vector<Node>& nodes, size_t index, const std::string& name) {
  const std::string reads = describe(nodes[index]) + ": input " + in_quotes(name);
  for (size_t i = index; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) {
      if (output != name) continue;
      if (i == index) return corrupt(reads + " is the node's own output");
      return corrupt(reads + " is made later, by " + describe(nodes[i]) +
                     "; expected nodes in topological order without cycles");
    }
  }
  return corrupt(reads + " is made by no node, input or initializer");
}

std::string describe_maker(const Node* maker) {
  return maker ? describe(*maker) : std::string("an input or initializer");
}

Result<> add_output(const Node& node, const std::string& name, Scope& scope) {
  if (name.empty()) return Ok();
  for (const Scope* at = &scope; at; at = at->outer) {
    const auto found = at->made.find(name);
    if (found == at->made.end()) continue;
    return corrupt(describe(node) + ": output " + in_quotes(name) + " is already made by " +
                   describe_maker(found->second) + ", expected each name to be made once");
  }
  scope.made.emplace(name, &node);
  return Ok();
}

Result<> check_subgraph(const Graph& graph, const Scope* outer);

Result<> check_nodes_in(const std::vector<Node>& nodes, Scope& scope) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    for (const std::string& input : node.inputs) {
      if (!input.empty() && !scope.sees(input)) return explain_unmade(nodes, i, input);
    }
    auto inside =
        for_each_subgraph(node, [&](const Graph& graph) { return check_subgraph(graph, &scope); });
    if (!inside.ok()) return std::move(inside).error().context(describe(node));
    for (const std::string& output : node.outputs) {
      KILN_RETURN_IF_ERROR(add_output(node, output, scope));
    }
  }
  return Ok();
}

// Inputs and initializers; an initializer may be an input's default.
Result<> add_sources(const Graph& graph, Scope& scope) {
  std::unordered_set<std::string_view> initializers;
  for (const ValueInfo& input : graph.inputs) {
    if (input.name.empty()) return corrupt("an input has no name");
    if (!scope.made.emplace(input.name, nullptr).second) {
      return corrupt("input " + in_quotes(input.name) + " is listed twice");
    }
  }
  for (const Tensor& tensor : graph.initializers) {
    if (tensor.name.empty()) return corrupt("an initializer has no name");
    if (!initializers.insert(tensor.name).second) {
      return corrupt("initializer " + in_quotes(tensor.name) + " is listed twice");
    }
    scope.made.emplace(tensor.name, nullptr);
  }
  return Ok();
}

Result<> check_outputs(const std::vector<std::string_view>& outputs, const Scope& scope) {
  std::unordered_set<std::string_view> listed;
  for (std::string_view output : outputs) {
    if (output.empty()) return corrupt("an output has no name");
    if (!listed.insert(output).second) {
      return corrupt("output " + in_quotes(output) + " is listed twice");
    }
    if (!scope.sees(output)) {
      return corrupt("output " + in_quotes(output) + " is made by no node, input or initializer");
    }
  }
  return Ok();
}

Result<> check_subgraph(const Graph& graph, const Scope* outer) {
  Scope scope{{}, outer};
  KILN_RETURN_IF_ERROR(add_sources(graph, scope));
  KILN_RETURN_IF_ERROR(check_nodes_in(graph.nodes, scope));
  std::vector<std::string_view> outputs;
  for (const ValueInfo& output : graph.outputs) outputs.push_back(output.name);
  return check_outputs(outputs, scope);
}

Result<> check_function_body(const Function& function) {
  Scope scope;
  for (const std::string& input : function.inputs) {
    if (!scope.made.emplace(input, nullptr).second) {
      return corrupt("input " + in_quotes(input) + " is listed twice");
    }
  }
  KILN_RETURN_IF_ERROR(check_nodes_in(function.nodes, scope));
  return check_outputs({function.outputs.begin(), function.outputs.end()}, scope);
}

}  // namespace

Result<> check_graphs(const Model& model) {
  KILN_RETURN_IF_ERROR(check_subgraph(model.graph, nullptr));
  for (const Function& function : model.functions) {
    auto result = check_function_body(function);
    if (!result.ok()) {
      return std::move(result).error().context("function '" + function.name + "'");
    }
  }
  return Ok();
}

}  // namespace kiln::onnx
