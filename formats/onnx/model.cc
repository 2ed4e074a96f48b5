#include "formats/onnx/model.h"

#include <algorithm>
#include <array>

namespace kiln::onnx {

std::string_view to_string(AttributeKind kind) {
  constexpr std::array<std::string_view, std::variant_size_v<Attribute::Value>> kNames = {
      "none", "int",    "float",   "string",  "tensor", "graph", "type",
      "ints", "floats", "strings", "tensors", "graphs", "types"};
  return kNames[static_cast<size_t>(kind)];
}

const Attribute* find_attribute(const Node& node, std::string_view name) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

std::string describe(const Node& node) {
  std::string text = "nameless node";
  const auto named = std::ranges::find_if_not(node.outputs, &std::string::empty);
  if (!node.name.empty()) {
    text = "node '" + node.name + "'";
  } else if (named != node.outputs.end()) {
    text = "node making '" + *named + "'";
  }
  text += " (";
  if (!node.domain.empty()) text.append(node.domain).append("::");
  return text.append(node.op_type).append(")");
}

}  // namespace kiln::onnx
