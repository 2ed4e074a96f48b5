#include "builder/import/onnx/importer.h"

#include <algorithm>

#include "builder/import/onnx/limits.h"

namespace kiln::onnx_import {
namespace {

// Calls and bodies inside each other; the reader has refused recursion.
constexpr int kMaxDepth = 100;

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

// Values made since `first_new` get the model's names.
void name_outputs(ir::Graph& graph, const onnx::Node& node, const std::string& prefix,
                  const std::vector<Binding>& outputs, size_t first_new) {
  for (size_t i = 0; i < outputs.size() && i < node.outputs.size(); ++i) {
    if (outputs[i].kind != Binding::Kind::kTensor) continue;
    if (index_of(outputs[i].value) < first_new) continue;
    graph.set_value_name(outputs[i].value, prefix + node.outputs[i]);
  }
}

}  // namespace

std::string label(const onnx::Node& node) {
  if (!node.name.empty()) return node.name;
  for (const std::string& output : node.outputs) {
    if (!output.empty()) return output;
  }
  return node.op_type;
}

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
    if (type.rank() > kMaxRank) {
      return Error{ErrorCode::kUnsupported, "input '" + input.name + "' has rank " +
                                                std::to_string(type.rank()) +
                                                ", expected at most " + std::to_string(kMaxRank)};
    }
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
