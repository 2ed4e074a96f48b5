#include <array>

#include "formats/onnx/check_model.h"
#include "formats/onnx/walk_nodes.h"

namespace kiln::onnx {
namespace {

// Length of the UTF-8 sequence at `at`, 0 when it is none (overlong forms and surrogates included).
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const uint32_t lead = byte(at);
  const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length == 0 || lead > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  const uint32_t second = byte(at + 1);
  if (lead == 0xe0 && second < 0xa0) return 0;
  if (lead == 0xed && second > 0x9f) return 0;
  if (lead == 0xf0 && second < 0x90) return 0;
  if (lead == 0xf4 && second > 0x8f) return 0;
  return length;
}

// Offset of the first byte that no name may hold; npos for a good name.
size_t find_bad_byte(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const size_t length = utf8_length(text, at);
    if (length == 0 || byte < 0x20 || byte == 0x7f) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string hex(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

Result<> check_name(std::string_view name, const char* what) {
  const size_t at = find_bad_byte(name);
  if (at == std::string_view::npos) return Ok();
  return Error{ErrorCode::kCorruptData,
               std::string(what) + " '" + std::string(name.substr(0, at)) + "...' has byte " +
                   hex(static_cast<unsigned char>(name[at])) + " at offset " + std::to_string(at) +
                   ", expected UTF-8 without control characters"};
}

template <class Items>
Result<> check_each(const Items& items, const char* what) {
  for (const auto& item : items) {
    if constexpr (requires { item.name; }) {
      KILN_RETURN_IF_ERROR(check_name(item.name, what));
    } else {
      KILN_RETURN_IF_ERROR(check_name(item, what));
    }
  }
  return Ok();
}

Result<> check_values(const std::vector<ValueInfo>& values) {
  KILN_RETURN_IF_ERROR(check_each(values, "value name"));
  for (const ValueInfo& value : values) {
    if (!value.shape) continue;
    for (const Dim& dim : *value.shape) {
      KILN_RETURN_IF_ERROR(check_name(dim.symbol, "dimension name"));
    }
  }
  return Ok();
}

Result<> check_graph(const Graph& graph);

Result<> check_node(const Node& node) {
  KILN_RETURN_IF_ERROR(check_name(node.name, "node name"));
  KILN_RETURN_IF_ERROR(check_name(node.op_type, "operator"));
  KILN_RETURN_IF_ERROR(check_name(node.domain, "domain"));
  KILN_RETURN_IF_ERROR(check_name(node.overload, "overload"));
  KILN_RETURN_IF_ERROR(check_each(node.inputs, "value name"));
  KILN_RETURN_IF_ERROR(check_each(node.outputs, "value name"));
  KILN_RETURN_IF_ERROR(check_each(node.attributes, "attribute name"));
  return for_each_subgraph(node, check_graph);
}

Result<> check_nodes_of(const std::vector<Node>& nodes) {
  for (const Node& node : nodes) KILN_RETURN_IF_ERROR(check_node(node));
  return Ok();
}

Result<> check_graph(const Graph& graph) {
  KILN_RETURN_IF_ERROR(check_name(graph.name, "graph name"));
  KILN_RETURN_IF_ERROR(check_values(graph.inputs));
  KILN_RETURN_IF_ERROR(check_values(graph.outputs));
  KILN_RETURN_IF_ERROR(check_values(graph.value_info));
  KILN_RETURN_IF_ERROR(check_each(graph.initializers, "value name"));
  return check_nodes_of(graph.nodes);
}

Result<> check_function(const Function& function) {
  KILN_RETURN_IF_ERROR(check_name(function.name, "function name"));
  KILN_RETURN_IF_ERROR(check_name(function.domain, "domain"));
  KILN_RETURN_IF_ERROR(check_name(function.overload, "overload"));
  KILN_RETURN_IF_ERROR(check_each(function.inputs, "value name"));
  KILN_RETURN_IF_ERROR(check_each(function.outputs, "value name"));
  KILN_RETURN_IF_ERROR(check_each(function.attributes, "attribute name"));
  KILN_RETURN_IF_ERROR(check_each(function.defaults, "attribute name"));
  return check_nodes_of(function.nodes);
}

}  // namespace

Result<> check_names(const Model& model) {
  KILN_RETURN_IF_ERROR(check_name(model.producer, "producer"));
  for (const auto& [domain, version] : model.opset_imports) {
    KILN_RETURN_IF_ERROR(check_name(domain, "domain"));
  }
  KILN_RETURN_IF_ERROR(check_graph(model.graph));
  for (const Function& function : model.functions) {
    KILN_RETURN_IF_ERROR(check_function(function));
  }
  return Ok();
}

}  // namespace kiln::onnx
