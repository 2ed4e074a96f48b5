// Importer's choice for one node: a function of the model, a handler, a plugin, or the body that
// ONNX defines for the operator.
#include <exception>

#include "builder/import/onnx/handlers.h"
#include "builder/import/onnx/importer.h"
#include "builder/import/onnx/plugin_node.h"
#include "formats/onnx/schema.h"

namespace kiln::onnx_import {
namespace {

constexpr int64_t kOldestOpset = 7;

bool knows_schema(const std::string& domain) { return onnx::newest_opset(domain).has_value(); }

// Argument counts and required attributes, as ONNX's schema has them.
Result<> check_schema(const onnx::Node& node, const onnx::SchemaInfo& schema) {
  const auto inputs = static_cast<int64_t>(node.inputs.size());
  const auto outputs = static_cast<int64_t>(node.outputs.size());
  if (inputs < schema.min_inputs || inputs > schema.max_inputs) {
    return Error{ErrorCode::kInvalidArgument, "found " + std::to_string(inputs) +
                                                  " inputs, expected " +
                                                  std::to_string(schema.min_inputs) + " to " +
                                                  std::to_string(schema.max_inputs)};
  }
  if (outputs > schema.max_outputs) {
    return Error{ErrorCode::kInvalidArgument, "found " + std::to_string(outputs) +
                                                  " outputs, expected at most " +
                                                  std::to_string(schema.max_outputs)};
  }
  for (const onnx::AttributeInfo& attribute : schema.attributes) {
    if (attribute.required && !onnx::find_attribute(node, attribute.name)) {
      return Error{ErrorCode::kInvalidArgument,
                   "the required attribute '" + attribute.name + "' is missing"};
    }
  }
  return Ok();
}

// Operator sets before 7 are read as far as their operators are still those of 7.
Result<> check_age(const onnx::Node& node, int64_t opset, const onnx::SchemaInfo& schema) {
  if (opset >= kOldestOpset || !node.domain.empty()) return Ok();
  const auto oldest = onnx::find_schema(node.op_type, node.domain, kOldestOpset);
  if (oldest.ok() && oldest->since_version == schema.since_version) return Ok();
  return Error{ErrorCode::kUnsupported,
               "the operator is of operator set " + std::to_string(opset) + ", expected " +
                   std::to_string(kOldestOpset) +
                   " or newer; convert the model with onnx.version_converter"};
}

onnx::ValueInfo value_info(const ir::Graph& graph, ir::ValueId value) {
  const TensorType& type = graph.type(value);
  onnx::ValueInfo info;
  info.dtype = type.dtype;
  info.shape.emplace();
  for (int64_t extent : type.shape) info.shape->push_back({extent, ""});
  return info;
}

Result<std::vector<std::optional<ValueId>>> tensors_of(std::span<const Binding> inputs,
                                                       bool may_be_sequences) {
  std::vector<std::optional<ValueId>> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind == Binding::Kind::kSequence && !may_be_sequences) {
      return Error{ErrorCode::kInvalidArgument,
                   "input " + std::to_string(i) + " is a sequence, expected a tensor"};
    }
    const bool tensor = inputs[i].kind == Binding::Kind::kTensor;
    values.push_back(tensor ? std::optional(inputs[i].value) : std::nullopt);
  }
  return values;
}

}  // namespace

Result<int64_t> Importer::opset_of(const onnx::Node& node, const Scope& scope) const {
  const auto it = scope.opsets->find(node.domain);
  if (it != scope.opsets->end()) return it->second;
  return Error{ErrorCode::kCorruptData,
               "domain '" + node.domain + "' is not among the model's imported operator sets"};
}

const onnx::Function* Importer::find_function(const onnx::Node& node) const {
  for (const onnx::Function& function : model_.functions) {
    if (function.name == node.op_type && function.domain == node.domain &&
        function.overload == node.overload) {
      return &function;
    }
  }
  return nullptr;
}

// The inputs could not be imported; the operator itself is still looked up.
Result<> Importer::check_known(const onnx::Node& node, const Scope& scope) const {
  if (find_function(node) || find_binding_handler(node.domain, node.op_type) ||
      find_handler(node.domain, node.op_type) || find_node_plugin(options_.plugins, node)) {
    return Ok();
  }
  KILN_ASSIGN_OR_RETURN(const int64_t opset, opset_of(node, scope));
  return unknown_operator(node, opset);
}

Error Importer::unknown_operator(const onnx::Node& node, int64_t opset) const {
  if (!knows_schema(node.domain)) {
    return {ErrorCode::kUnsupported,
            "operator '" + node.op_type + "' of domain '" + node.domain +
                "' is neither known nor a function of the model; load a plugin that offers '" +
                node.domain + "." + node.op_type + "' with --plugin"};
  }
  auto schema = onnx::find_schema(node.op_type, node.domain, opset);
  if (!schema.ok()) return std::move(schema).error();
  return {ErrorCode::kUnsupported, "operator '" + node.op_type + "' is not supported"};
}

Bindings Importer::dispatch(const onnx::Node& node, Scope& scope, std::vector<Binding>& inputs) {
  if (const onnx::Function* function = find_function(node)) {
    return call_function(*function, node, scope, inputs);
  }
  KILN_ASSIGN_OR_RETURN(const int64_t opset, opset_of(node, scope));
  if (knows_schema(node.domain)) {
    const auto schema = onnx::find_schema(node.op_type, node.domain, opset);
    if (schema.ok()) {
      KILN_RETURN_IF_ERROR(check_age(node, opset, *schema));
      KILN_RETURN_IF_ERROR(check_schema(node, *schema));
    }
  }
  if (find_binding_handler(node.domain, node.op_type) || find_handler(node.domain, node.op_type) ||
      find_node_plugin(options_.plugins, node)) {
    return run_handler(node, opset, scope, inputs);
  }
  if (!knows_schema(node.domain)) return unknown_operator(node, opset);
  std::vector<std::optional<onnx::ValueInfo>> types;
  for (const Binding& input : inputs) {
    const bool tensor = input.kind == Binding::Kind::kTensor;
    types.push_back(tensor ? std::optional(value_info(*scope.graph, input.value)) : std::nullopt);
  }
  KILN_ASSIGN_OR_RETURN(const auto body, onnx::function_body(node, *scope.opsets, types));
  if (!body) return unknown_operator(node, opset);
  return call_function(*body, node, scope, inputs);
}

Bindings Importer::run_handler(const onnx::Node& node, int64_t opset, Scope& scope,
                               std::vector<Binding>& inputs) {
  const BindingHandler* binding_handler = find_binding_handler(node.domain, node.op_type);
  KILN_ASSIGN_OR_RETURN(auto values, tensors_of(inputs, binding_handler != nullptr));
  const std::string name = label(node);
  NodeContext context(*this, scope, node, opset, std::move(values), scope.prefix + name,
                      {scope.origin.empty() ? name : scope.origin});
  try {
    if (binding_handler) {
      auto outputs = binding_handler->import(context, inputs);
      if (context.failed()) return *context.error();
      return outputs;
    }
    const Plugin* plugin = find_node_plugin(options_.plugins, node);
    const auto outputs = plugin ? import_plugin_node(context, *plugin)
                                : find_handler(node.domain, node.op_type)->import(context);
    if (context.failed()) return *context.error();
    if (!outputs.ok()) return outputs.error();
    std::vector<Binding> bindings;
    for (ValueId value : *outputs) bindings.push_back(Binding::tensor(value));
    return bindings;
  } catch (const std::exception& e) {
    if (context.failed()) return *context.error();
    return Error{ErrorCode::kInternal,
                 std::string("the import handler failed: ") + e.what() + "; please report this"};
  }
}

}  // namespace kiln::onnx_import
