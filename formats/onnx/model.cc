#include "formats/onnx/model.h"

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
  std::string op = node.domain.empty() ? " (" : " (" + node.domain + "::";
  op += node.op_type + ")";
  if (!node.name.empty()) return "node '" + node.name + "'" + op;
  for (const std::string& output : node.outputs) {
    if (!output.empty()) return "node making '" + output + "'" + op;
  }
  return "nameless node" + op;
}

}  // namespace kiln::onnx
