#include "builder/import/onnx/importer.h"

#include <algorithm>
#include <exception>

#include "builder/import/onnx/handlers.h"
#include "builder/import/onnx/plugin_node.h"
#include "formats/onnx/schema.h"

namespace kiln::onnx_import {
namespace {

// Calls and bodies inside each other; the reader has refused recursion.
constexpr int kMaxDepth = 100;
constexpr int64_t kOldestOpset = 7;

std::string label(const onnx::Node& node) {
  if (!node.name.empty()) return node.name;
  for (const std::string& output : node.outputs) {
    if (!output.empty()) return output;
  }
  return node.op_type;
}

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

// Attributes that refer to the enclosing function's are replaced by the call's values; those that
// the call does not give disappear.
onnx::Node resolve_references(const onnx::Node& node,
                              const std::map<std::string, onnx::Attribute>& values) {
  onnx::Node resolved = node;
  resolved.attributes.clear();
  for (const onnx::Attribute& attribute : node.attributes) {
    if (attribute.reference.empty()) {
      resolved.attributes.push_back(attribute);
      continue;
    }
    const auto it = values.find(attribute.reference);
    if (it == values.end()) continue;
    resolved.attributes.push_back(it->second);
    resolved.attributes.back().name = attribute.name;
  }
  return resolved;
}

onnx::ValueInfo value_info(const ir::Graph& graph, ir::ValueId value) {
  const TensorType& type = graph.type(value);
  onnx::ValueInfo info;
  info.dtype = type.dtype;
  info.shape.emplace();
  for (int64_t extent : type.shape) info.shape->push_back({extent, ""});
  return info;
}

// Values made since `first_new` get the model's names.
void name_outputs(ir::Graph& graph, const onnx::Node& node, const std::string& prefix,
                  const std::vector<Binding>& outputs, size_t first_new) {
  for (size_t i = 0; i < outputs.size() && i < node.outputs.size(); ++i) {
    if (outputs[i].kind != Binding::Kind::kTensor) continue;
    if (index_of(outputs[i].value) < first_new) continue;
    graph.set_value_name(outputs[i].value, prefix + node.outputs[i]);
  }
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

Importer::Importer(const onnx::Model& model, const ShapePoint& point, const ImportOptions& options)
    : model_(model), point_(point), options_(options) {}

Result<> Importer::run() {
  Scope scope;
  scope.graph = &graph_;
  scope.opsets = &model_.opset_imports;
  KILN_RETURN_IF_ERROR(bind_inputs(scope));
  KILN_RETURN_IF_ERROR(bind_initializers(model_.graph, scope));
  import_main_nodes(scope);
  return bind_outputs(scope);
}

Result<> Importer::bind_inputs(Scope& scope) {
  for (const onnx::ValueInfo& input : model_.graph.inputs) {
    const auto& initializers = model_.graph.initializers;
    const bool has_default =
        std::any_of(initializers.begin(), initializers.end(),
                    [&](const onnx::Tensor& tensor) { return tensor.name == input.name; });
    if (has_default) continue;
    if (!input.dtype) {
      return Error{ErrorCode::kUnsupported,
                   "input '" + input.name + "' is " +
                       (input.type_text.empty() ? "of no declared type" : input.type_text) +
                       ", expected a tensor of numbers"};
    }
    const auto shape = point_.inputs.find(input.name);
    if (shape == point_.inputs.end() || !checked_element_count(shape->second)) {
      return Error{ErrorCode::kInvalidArgument, "shape point '" + point_.name +
                                                    "' has no shape for input '" + input.name +
                                                    "'; give it with --shapes"};
    }
    const TensorType type{*input.dtype, shape->second};
    const ValueId value = graph_.add_input(input.name, type);
    scope.names[input.name] = Binding::tensor(value);
    const auto fixed = point_.fixed_values.find(input.name);
    if (fixed == point_.fixed_values.end()) continue;
    if (fixed->second.type != type) {
      return Error{ErrorCode::kInvalidArgument, "the fixed value of input '" + input.name +
                                                    "' is " + to_string(fixed->second.type) +
                                                    ", expected " + to_string(type)};
    }
    auto bytes = SharedBytes::take(fixed->second.bytes);
    scope.names[input.name] =
        Binding::tensor(graph_.add_constant(input.name, type, std::move(bytes)));
  }
  return Ok();
}

Result<> Importer::bind_initializers(const onnx::Graph& graph, Scope& scope) {
  for (const onnx::Tensor& tensor : graph.initializers) {
    scope.names[tensor.name] = Binding::tensor(
        scope.graph->add_constant(scope.prefix + tensor.name, tensor.type, tensor.data));
  }
  return Ok();
}

void Importer::import_main_nodes(Scope& scope) {
  for (const onnx::Node& node : model_.graph.nodes) {
    auto result = import_node(node, scope);
    if (!result.ok()) {
      problems_.push_back(
          {label(node), node.op_type, std::move(result).error().context(onnx::describe(node))});
    }
    for (const std::string& output : node.outputs) scope.names.try_emplace(output);  // kUnknown
  }
}

Result<> Importer::bind_outputs(Scope& scope) {
  const auto& outputs = model_.graph.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto binding = find_name(scope, outputs[i].name, constants_);
    if (!binding || binding->kind == Binding::Kind::kUnknown) {
      if (!problems_.empty()) continue;
      return Error{ErrorCode::kCorruptData, "nothing makes the output '" + outputs[i].name + "'"};
    }
    if (binding->kind != Binding::Kind::kTensor) {
      return Error{ErrorCode::kUnsupported,
                   "output '" + outputs[i].name + "' is a sequence or optional, expected a tensor"};
    }
    const DType dtype = graph_.type(binding->value).dtype;
    if (outputs[i].dtype && *outputs[i].dtype != dtype) {
      return Error{ErrorCode::kCorruptData, "output '" + outputs[i].name + "' is declared " +
                                                std::string(to_string(*outputs[i].dtype)) +
                                                ", its node makes " +
                                                std::string(to_string(dtype))};
    }
    graph_.mark_output(binding->value);
    graph_.set_output_name(graph_.outputs().size() - 1, outputs[i].name);
  }
  return Ok();
}

Result<> Importer::import_nodes(std::span<const onnx::Node> nodes, Scope& scope) {
  if (scope.depth > kMaxDepth) {
    return Error{ErrorCode::kUnsupported, "functions and bodies are nested more than " +
                                              std::to_string(kMaxDepth) + " deep"};
  }
  for (const onnx::Node& node : nodes) {
    auto result = import_node(node, scope);
    if (!result.ok()) return std::move(result).error().context(onnx::describe(node));
  }
  return Ok();
}

Result<> Importer::import_node(const onnx::Node& written, Scope& scope) {
  const onnx::Node node =
      scope.attributes ? resolve_references(written, *scope.attributes) : written;
  std::vector<Binding> inputs;
  bool unknown = false;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      inputs.push_back(Binding::none());
      continue;
    }
    const auto binding = find_name(scope, name, constants_);
    if (!binding) return Error{ErrorCode::kCorruptData, "nothing makes the input '" + name + "'"};
    unknown |= binding->kind == Binding::Kind::kUnknown;
    inputs.push_back(*binding);
  }
  if (unknown) return check_known(node, scope);
  const size_t first_new = scope.graph->value_count();
  KILN_ASSIGN_OR_RETURN(const auto outputs, dispatch(node, scope, inputs));
  name_outputs(*scope.graph, node, scope.prefix, outputs, first_new);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= outputs.size()) {
      return Error{ErrorCode::kUnsupported,
                   "output " + std::to_string(i) + " ('" + node.outputs[i] + "') is not made"};
    }
    scope.names[node.outputs[i]] = outputs[i];
  }
  return Ok();
}

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
  Scope inner;
  inner.graph = scope.graph;
  inner.parent = &scope;
  inner.attributes = scope.attributes;
  inner.opsets = scope.opsets;
  inner.prefix = scope.prefix;
  inner.origin = scope.origin;
  inner.depth = scope.depth + 1;
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

void Importer::need_values(const Scope& scope, const std::vector<std::string>& names) {
  const Scope* owner = &scope;  // the scope that made the graph
  const auto outer_of = [](const Scope* s) { return s->parent ? s->parent : s->caller; };
  while (outer_of(owner) && outer_of(owner)->graph == scope.graph) owner = outer_of(owner);
  if (scope.graph == &graph_) {
    for (const std::string& name : names) {
      if (std::count(needed_values_.begin(), needed_values_.end(), name) == 0) {
        needed_values_.push_back(name);
      }
    }
    return;
  }
  for (const Capture& capture : owner->captures) {
    const std::string& name = owner->graph->value(capture.inner).name;
    if (std::count(names.begin(), names.end(), name) == 0) continue;
    need_values(*outer_of(owner), Constants::inputs_behind(*outer_of(owner)->graph, capture.outer));
  }
}

}  // namespace kiln::onnx_import
