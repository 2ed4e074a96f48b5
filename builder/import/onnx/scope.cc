#include "builder/import/onnx/scope.h"

namespace kiln::onnx_import {
namespace {

// Values computed from constants enter a body as constants up to this size.
constexpr int64_t kMaxCopiedElements = 1 << 12;

ir::ValueId capture(Scope& scope, ir::ValueId outer, Constants& constants) {
  for (const Capture& known : scope.captures) {
    if (known.outer == outer) return known.inner;
  }
  const ir::Value& value = scope.parent->graph->value(outer);
  if (value.constant) return scope.graph->add_constant(value.name, value.type, *value.constant);
  if (value.type.elements() <= kMaxCopiedElements) {
    if (const auto known = constants.find(*scope.parent->graph, outer)) {
      return scope.graph->add_constant(value.name, known->type, known->bytes);
    }
  }
  const ir::ValueId inner = scope.graph->add_input(value.name, value.type);
  scope.captures.push_back({outer, inner});
  return inner;
}

Binding capture(Scope& scope, const Binding& outer, Constants& constants) {
  if (outer.kind == Binding::Kind::kTensor) {
    return Binding::tensor(capture(scope, outer.value, constants));
  }
  if (outer.kind != Binding::Kind::kSequence) return outer;
  std::vector<Binding> elements;
  for (const Binding& element : *outer.elements) {
    elements.push_back(capture(scope, element, constants));
  }
  return Binding::sequence(std::move(elements));
}

}  // namespace

Scope body_scope(Scope& outer, ir::Graph& graph) {
  Scope inner;
  inner.graph = &graph;
  inner.parent = &outer;
  inner.attributes = outer.attributes;
  inner.opsets = outer.opsets;
  inner.prefix = outer.prefix;
  inner.origin = outer.origin;
  inner.depth = outer.depth + 1;
  return inner;
}

std::optional<Binding> find_name(Scope& scope, const std::string& name, Constants& constants) {
  if (const auto it = scope.names.find(name); it != scope.names.end()) return it->second;
  if (!scope.parent) return std::nullopt;
  auto found = find_name(*scope.parent, name, constants);
  if (!found || scope.parent->graph == scope.graph) return found;
  Binding inner = capture(scope, *found, constants);
  scope.names[name] = inner;
  return inner;
}

}  // namespace kiln::onnx_import
