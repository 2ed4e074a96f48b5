#include "builder/import/onnx/plugin_node.h"

#include <nlohmann/json.hpp>

#include "formats/onnx/model.h"

namespace kiln::onnx_import {
namespace {

constexpr std::string_view kVersionAttribute = "plugin_version";

template <class T>
constexpr bool kIsPlain =
    std::is_same_v<T, int64_t> || std::is_same_v<T, float> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<float>> ||
    std::is_same_v<T, std::vector<std::string>>;

Result<std::string> attributes_json(const onnx::Node& node) {
  auto object = nlohmann::json::object();
  for (const onnx::Attribute& attribute : node.attributes) {
    if (attribute.name == kVersionAttribute) continue;
    const bool plain = std::visit(
        [&]<class T>(const T& value) {
          if constexpr (kIsPlain<T>) object[attribute.name] = value;
          return kIsPlain<T>;
        },
        attribute.value);
    if (!plain) {
      return Error{ErrorCode::kUnsupported,
                   "attribute '" + attribute.name + "' is of kind " +
                       std::string(onnx::to_string(onnx::kind_of(attribute))) +
                       ", plugins take numbers, strings and lists of them"};
    }
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string version_of(const onnx::Node& node) {
  const onnx::Attribute* attribute = onnx::find_attribute(node, kVersionAttribute);
  const auto* text = attribute ? std::get_if<std::string>(&attribute->value) : nullptr;
  return text ? *text : "";
}

}  // namespace

const Plugin* find_node_plugin(std::span<const Plugin> plugins, const onnx::Node& node) {
  return find_plugin(plugins, node.domain + "." + node.op_type, version_of(node));
}

Outputs import_plugin_node(NodeContext& c, const Plugin& plugin) {
  KILN_ASSIGN_OR_RETURN(std::string attributes, attributes_json(c.node()));
  const auto inputs = c.inputs();
  if (c.failed()) return *c.error();
  std::vector<TensorType> types;
  for (ValueId input : inputs) types.push_back(c.type(input));
  auto outputs = plugin.infer(attributes, types, c.output_count());
  if (!outputs.ok()) {
    return std::move(outputs).error().context("plugin '" + plugin.name() + "'");
  }
  return c.emit_typed(ir::PluginCall{plugin.name(), plugin.version(), std::move(attributes)},
                      inputs, *outputs);
}

}  // namespace kiln::onnx_import
