// Importer's calls of functions, and bodies: spliced into a graph, or imported into one of their
// own.
#include "builder/import/onnx/importer.h"

namespace kiln::onnx_import {

Bindings Importer::call_function(const onnx::Function& function, const onnx::Node& call,
                                 Scope& scope, std::vector<Binding>& inputs) {
  std::map<std::string, onnx::Attribute> attributes;
  for (const onnx::Attribute& value : function.defaults) attributes[value.name] = value;
  for (const onnx::Attribute& value : call.attributes) attributes[value.name] = value;
  if (inputs.size() > function.inputs.size()) {
    return Error{ErrorCode::kInvalidArgument,
                 "found " + std::to_string(inputs.size()) + " inputs, the function '" +
                     function.name + "' takes " + std::to_string(function.inputs.size())};
  }
  Scope body;
  body.graph = scope.graph;
  body.caller = &scope;
  body.attributes = &attributes;
  body.opsets = &function.opset_imports;
  body.prefix = scope.prefix + label(call) + "/";
  body.origin = scope.origin.empty() ? label(call) : scope.origin;
  body.depth = scope.depth + 1;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    body.names[function.inputs[i]] = i < inputs.size() ? inputs[i] : Binding::none();
  }
  KILN_RETURN_IF_ERROR(import_nodes(function.nodes, body));
  std::vector<Binding> outputs;
  for (const std::string& name : function.outputs) {
    const auto it = body.names.find(name);
    outputs.push_back(it == body.names.end() ? Binding::none() : it->second);
  }
  return outputs;
}

Bindings Importer::inline_body(const onnx::Graph& body, Scope& scope,
                               std::span<const Binding> arguments) {
  Scope inner = body_scope(scope, *scope.graph);
  KILN_RETURN_IF_ERROR(bind_initializers(body, inner));
  for (size_t i = 0; i < body.inputs.size() && i < arguments.size(); ++i) {
    inner.names[body.inputs[i].name] = arguments[i];
  }
  KILN_RETURN_IF_ERROR(import_nodes(body.nodes, inner));
  std::vector<Binding> outputs;
  for (const onnx::ValueInfo& output : body.outputs) {
    const auto binding = find_name(inner, output.name, constants_);
    if (!binding) return Error{ErrorCode::kCorruptData, "nothing makes '" + output.name + "'"};
    outputs.push_back(*binding);
  }
  return outputs;
}

Result<> Importer::import_body(const onnx::Graph& body, Scope& inner) {
  KILN_RETURN_IF_ERROR(bind_initializers(body, inner));
  KILN_RETURN_IF_ERROR(import_nodes(body.nodes, inner));
  for (const onnx::ValueInfo& output : body.outputs) {
    const auto binding = find_name(inner, output.name, constants_);
    if (!binding || binding->kind != Binding::Kind::kTensor) {
      return Error{ErrorCode::kUnsupported,
                   "output '" + output.name + "' of the body is not a tensor"};
    }
    inner.graph->mark_output(binding->value);
  }
  return Ok();
}

}  // namespace kiln::onnx_import
