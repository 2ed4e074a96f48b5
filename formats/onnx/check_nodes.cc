#include <limits>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "formats/onnx/check_model.h"
#include "formats/onnx/schema.h"
#include "formats/onnx/walk_nodes.h"

namespace kiln::onnx {
namespace {

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

std::string range_text(int64_t low, int64_t high) {
  if (high == std::numeric_limits<int32_t>::max()) return std::to_string(low) + " or more";
  if (low == high) return std::to_string(low);
  return std::to_string(low) + " to " + std::to_string(high);
}

Result<> check_count(const char* what, size_t found, int64_t low, int64_t high) {
  const auto count = static_cast<int64_t>(found);
  if (count >= low && count <= high) return Ok();
  return corrupt("has " + std::to_string(found) + " " + what + ", expected " +
                 range_text(low, high));
}

Result<> check_inputs(const Node& node, const SchemaInfo& schema) {
  KILN_RETURN_IF_ERROR(
      check_count("inputs", node.inputs.size(), schema.min_inputs, schema.max_inputs));
  for (size_t i = 0; i < node.inputs.size() && i < schema.inputs.size(); ++i) {
    const ParameterInfo& parameter = schema.inputs[i];
    if (parameter.optional || parameter.variadic || !node.inputs[i].empty()) continue;
    return corrupt("input " + std::to_string(i) + " ('" + parameter.name +
                   "') is left out, and is not optional");
  }
  return Ok();
}

const AttributeInfo* find_info(const SchemaInfo& schema, std::string_view name) {
  for (const AttributeInfo& info : schema.attributes) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

Result<> check_attributes(const Node& node, const SchemaInfo& schema) {
  for (const Attribute& attribute : node.attributes) {
    const AttributeInfo* info = find_info(schema, attribute.name);
    if (!info) {
      return corrupt("attribute '" + attribute.name + "' is unknown to the operator of opset " +
                     std::to_string(schema.since_version));
    }
    if (attribute.reference.empty() && kind_of(attribute) != info->kind) {
      return corrupt("attribute '" + attribute.name + "' is of type " +
                     std::string(to_string(kind_of(attribute))) + ", expected " +
                     std::string(to_string(info->kind)));
    }
  }
  for (const AttributeInfo& info : schema.attributes) {
    if (info.required && !find_attribute(node, info.name)) {
      return corrupt("attribute '" + info.name + "' (" + std::string(to_string(info.kind)) +
                     ") is missing, and is required");
    }
  }
  return Ok();
}

Result<> check_unique_attributes(const Node& node) {
  std::unordered_set<std::string_view> names;
  for (const Attribute& attribute : node.attributes) {
    if (!names.insert(attribute.name).second) {
      return corrupt("attribute '" + attribute.name + "' is given twice");
    }
  }
  return Ok();
}

// The branches of an If, and the body of a Loop, have as many values as the node around them.
Result<> check_control_flow(const Node& node) {
  if (!node.domain.empty() || (node.op_type != "If" && node.op_type != "Loop")) return Ok();
  const bool loop = node.op_type == "Loop";
  for (const Attribute& attribute : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&attribute.value);
    if (!graph) continue;
    const size_t inputs = loop ? node.inputs.size() : 0;
    // The condition is an output of a Loop's body, and not one of the Loop.
    const size_t outputs = node.outputs.size() + (loop ? 1 : 0);
    const std::string where = attribute.name + " has ";
    if ((*graph)->inputs.size() != inputs) {
      return corrupt(where + std::to_string((*graph)->inputs.size()) + " inputs, expected " +
                     std::to_string(inputs));
    }
    if ((*graph)->outputs.size() != outputs) {
      return corrupt(where + std::to_string((*graph)->outputs.size()) + " outputs, expected " +
                     std::to_string(outputs) + " for a node with " +
                     std::to_string(node.outputs.size()));
    }
  }
  return Ok();
}

class NodeChecker {
 public:
  explicit NodeChecker(const std::vector<Function>& functions) {
    for (const Function& function : functions) {
      functions_.emplace(std::tie(function.domain, function.name, function.overload), &function);
    }
  }

  Result<> check(const std::vector<Node>& nodes, const std::map<std::string, int64_t>& imports) {
    return walk_nodes(nodes, [&](const Node& node) -> Result<> {
      auto result = check_node(node, imports.at(node.domain));
      if (!result.ok()) return std::move(result).error().context(describe(node));
      return Ok();
    });
  }

 private:
  Result<> check_node(const Node& node, int64_t opset) {
    if (node.op_type.empty()) return corrupt("has no operator");
    KILN_RETURN_IF_ERROR(check_unique_attributes(node));
    const auto function = functions_.find(std::tie(node.domain, node.op_type, node.overload));
    if (function != functions_.end()) {
      const Function& callee = *function->second;
      KILN_RETURN_IF_ERROR(
          check_count("inputs", node.inputs.size(), 0, static_cast<int64_t>(callee.inputs.size())));
      return check_count("outputs", node.outputs.size(), 0,
                         static_cast<int64_t>(callee.outputs.size()));
    }
    const SchemaInfo* schema = find_cached(node, opset);
    if (!schema) return Ok();
    KILN_RETURN_IF_ERROR(check_inputs(node, *schema));
    KILN_RETURN_IF_ERROR(
        check_count("outputs", node.outputs.size(), schema->min_outputs, schema->max_outputs));
    KILN_RETURN_IF_ERROR(check_attributes(node, *schema));
    return check_control_flow(node);
  }

  const SchemaInfo* find_cached(const Node& node, int64_t opset) {
    const auto key = std::make_tuple(node.domain, node.op_type, opset);
    auto found = schemas_.find(key);
    if (found == schemas_.end()) {
      auto schema = find_schema(node.op_type, node.domain, opset);
      std::optional<SchemaInfo> known;
      if (schema.ok()) known = *std::move(schema);
      found = schemas_.emplace(key, std::move(known)).first;
    }
    return found->second ? &*found->second : nullptr;
  }

  std::map<std::tuple<std::string, std::string, std::string>, const Function*> functions_;
  std::map<std::tuple<std::string, std::string, int64_t>, std::optional<SchemaInfo>> schemas_;
};

}  // namespace

Result<> check_nodes(const Model& model) {
  NodeChecker checker(model.functions);
  KILN_RETURN_IF_ERROR(checker.check(model.graph.nodes, model.opset_imports));
  for (const Function& function : model.functions) {
    auto result = checker.check(function.nodes, function.opset_imports);
    if (!result.ok()) {
      return std::move(result).error().context("function '" + function.name + "'");
    }
  }
  return Ok();
}

}  // namespace kiln::onnx
