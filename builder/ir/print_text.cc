#include "builder/ir/text.h"

namespace kiln::ir {
namespace {

// Values are numbered in the order they are printed, so that the text does not depend on ids.
class Numbering {
 public:
  explicit Numbering(const Graph& graph) : numbers_(graph.value_count()) {
    uint32_t next = 0;
    for (ValueId id : graph.inputs()) numbers_[index_of(id)] = next++;
    for (uint32_t i = 0; i < graph.value_count(); ++i) {
      if (graph.value(ValueId{i}).constant) numbers_[i] = next++;
    }
    for (NodeId id : graph.topological_order()) {
      for (ValueId output : graph.node(id).outputs) numbers_[index_of(output)] = next++;
    }
  }
  std::string operator()(ValueId id) const { return "%" + std::to_string(numbers_[index_of(id)]); }

 private:
  std::vector<uint32_t> numbers_;
};

template <class T, class F>
std::string join(const T& items, const F& print) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += print(item);
  }
  return text;
}

std::vector<const Graph*> bodies_of(const Op& op) {
  if (const auto* branch = std::get_if<If>(&op)) {
    return {branch->then_body.get(), branch->else_body.get()};
  }
  if (const auto* loop = std::get_if<Loop>(&op)) return {loop->body.get()};
  if (const auto* region = std::get_if<Region>(&op)) return {region->body.get()};
  return {};
}

std::string print(const Graph& graph, const std::string& indent, bool full);

std::string print_node(const Graph& graph, const Numbering& value_ref, const Node& node,
                       const std::string& indent, bool full) {
  std::string text =
      indent + join(node.outputs, value_ref) + " = " + to_text(text_operation_of(node.op)) + "(" +
      join(node.inputs, value_ref) + ") : " + join(node.outputs, [&](ValueId id) {
        const Value& value = graph.value(id);
        return to_string(value.type) + (value.name.empty() ? "" : " " + quote(value.name));
      });
  text += " ; " + quote(node.name);
  if (!node.origins.empty()) text += " from " + join(node.origins, quote);
  for (const Graph* body : bodies_of(node.op)) text += " " + print(*body, indent, full);
  return text + "\n";
}

std::string print(const Graph& graph, const std::string& indent, bool full) {
  std::string text = "{\n";
  const std::string inner = indent + "  ";
  const Numbering value_ref(graph);
  for (ValueId id : graph.inputs()) {
    text += inner + "input " + value_ref(id) + " : " + to_string(graph.type(id)) + " " +
            quote(graph.value(id).name) + "\n";
  }
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const Value& value = graph.value(ValueId{i});
    if (!value.constant) continue;
    text += inner + "const " + value_ref(ValueId{i}) + " : " + to_string(value.type) + " " +
            quote(value.name) + " = " + constant_to_text(value.type, *value.constant, full) + "\n";
  }
  for (NodeId id : graph.topological_order()) {
    text += print_node(graph, value_ref, graph.node(id), inner, full);
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    text += inner + "output " + value_ref(graph.outputs()[i]) + " " + quote(graph.output_name(i)) +
            "\n";
  }
  return text + indent + "}";
}

}  // namespace

std::string quote(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Operation text_operation_of(const Op& op) {
  if (auto operation = operation_of(op)) return *operation;
  if (const auto* loop = std::get_if<Loop>(&op)) {
    return Operation{"loop", {}}.set("carried", loop->carried).set("trip_count", loop->trip_count);
  }
  if (const auto* region = std::get_if<Region>(&op)) {
    return Operation{"region", {}}
        .set("kind", std::string(to_string(region->kind)))
        .set("origins", region->origins)
        .set("rule", region->rule);
  }
  if (const auto* plugin = std::get_if<PluginCall>(&op)) {
    return Operation{"plugin", {}}
        .set("attributes", plugin->attributes)
        .set("name", plugin->name)
        .set("version", plugin->version);
  }
  return {"if", {}};
}

std::string to_text(const Graph& graph, bool full_constants) {
  return "graph " + print(graph, "", full_constants) + "\n";
}

}  // namespace kiln::ir
