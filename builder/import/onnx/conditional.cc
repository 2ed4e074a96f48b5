// If: a constant condition leaves one branch, the rest becomes ir::If.
#include "builder/import/onnx/bodies.h"

namespace kiln::onnx_import {
namespace {

std::string number(size_t value) { return std::to_string(value); }

// Both branches take the same captures in the same order: those of `from` that `to` lacks are
// appended to it as inputs.
void align_captures(const Scope& from, Scope& to) {
  for (size_t i = to.captures.size(); i < from.captures.size(); ++i) {
    const ir::Value& value = from.graph->value(from.captures[i].inner);
    to.captures.push_back({from.captures[i].outer, to.graph->add_input(value.name, value.type)});
  }
}

Bindings runtime_if(NodeContext& c, const onnx::Graph& then_body, const onnx::Graph& else_body) {
  auto then_graph = std::make_shared<ir::Graph>(), else_graph = std::make_shared<ir::Graph>();
  Scope then_scope = body_scope(c.scope(), *then_graph),
        else_scope = body_scope(c.scope(), *else_graph);
  auto result = c.importer().import_body(then_body, then_scope);
  if (!result.ok()) return std::move(result).error().context("then_branch");
  align_captures(then_scope, else_scope);
  result = c.importer().import_body(else_body, else_scope);
  if (!result.ok()) return std::move(result).error().context("else_branch");
  align_captures(else_scope, then_scope);
  std::vector<ValueId> inputs{c.reshape(c.input(0), {})};
  for (ValueId value : outer_values(then_scope)) inputs.push_back(value);
  return tensors(c.emit_all(ir::If{then_graph, else_graph}, inputs));
}

}  // namespace

Bindings import_if(NodeContext& c, std::span<const Binding>) {
  const onnx::Graph* then_body = c.get_graph("then_branch");
  const onnx::Graph* else_body = c.get_graph("else_branch");
  if (!then_body || !else_body) return c.fail("then_branch or else_branch is missing");
  for (const auto* body : {then_body, else_body}) {
    if (body->outputs.size() == c.output_count()) continue;
    return c.fail((body == then_body ? "then_branch gives " : "else_branch gives ") +
                  number(body->outputs.size()) + " outputs, the node has " +
                  number(c.output_count()));
  }
  const TensorType condition = c.input_type(0);
  if (condition.dtype != DType::kBool || condition.elements() != 1) {
    return c.fail("the condition is " + to_string(condition) + ", expected one bool");
  }
  if (const auto known = known_bool(c, c.input(0))) {
    auto outputs = c.importer().inline_body(*known ? *then_body : *else_body, c.scope(), {});
    if (!outputs.ok()) {
      return std::move(outputs).error().context(*known ? "then_branch" : "else_branch");
    }
    return outputs;
  }
  auto outputs = runtime_if(c, *then_body, *else_body);
  if (!outputs.ok() || c.failed()) need_inputs_behind(c, std::vector<ValueId>{c.input(0)});
  return outputs;
}

}  // namespace kiln::onnx_import
