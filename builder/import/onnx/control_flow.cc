#include "builder/import/onnx/bodies.h"

namespace kiln::onnx_import {

bool truth(const HostTensor& tensor) { return tensor.bytes.data()[0] != std::byte{0}; }

std::optional<bool> known_bool(NodeContext& c, ValueId value) {
  const auto tensor = c.constant_of(value);
  if (!tensor || tensor->type.elements() != 1) return std::nullopt;
  return truth(*tensor);
}

void need_inputs_behind(NodeContext& c, std::span<const ValueId> values) {
  for (ValueId value : values) {
    if (value == kNoValue) continue;
    c.importer().need_values(c.scope(), Constants::inputs_behind(c.graph(), value));
  }
}

std::vector<ValueId> outer_values(const Scope& scope) {
  std::vector<ValueId> values;
  for (const Capture& capture : scope.captures) values.push_back(capture.outer);
  return values;
}

std::vector<Binding> tensors(const std::vector<ValueId>& values) {
  std::vector<Binding> bindings;
  for (ValueId value : values) bindings.push_back(Binding::tensor(value));
  return bindings;
}

namespace {

constexpr BindingHandler kHandlers[] = {
    {"If", import_if},
    {"Loop", import_loop},
    {"Scan", import_scan},
};

}  // namespace

std::span<const BindingHandler> control_flow_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
