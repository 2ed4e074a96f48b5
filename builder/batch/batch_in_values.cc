#include "builder/batch/batch_in_values.h"

#include <algorithm>
#include <set>
#include <vector>

namespace kiln {
namespace {

constexpr size_t kMostBytes = 1024;

// Types and contents of small constants.
class Constants {
 public:
  explicit Constants(const ir::Graph& graph) {
    for (size_t i = 0; i < graph.value_count(); ++i) {
      const ir::Value& value = graph.value(ir::ValueId{static_cast<uint32_t>(i)});
      if (!is_small(value)) continue;
      types_.insert(to_string(value.type));
      contents_.insert(content(value));
    }
  }

  // Whether only constants of other content have this one's type.
  bool differ_from(const ir::Value& value) const {
    return is_small(value) && types_.contains(to_string(value.type)) &&
           !contents_.contains(content(value));
  }

 private:
  static bool is_small(const ir::Value& value) {
    return value.constant && value.constant->size() <= kMostBytes;
  }
  static std::string content(const ir::Value& value) {
    return to_string(value.type) +
           std::string(reinterpret_cast<const char*>(value.constant->data()),
                       value.constant->size());
  }

  std::set<std::string> types_, contents_;
};

// By value: whether an output needs it.
std::vector<bool> needed_values(const ir::Graph& graph) {
  std::vector<bool> needed(graph.value_count());
  for (ir::ValueId id : graph.outputs()) needed[index_of(id)] = true;
  const auto order = graph.topological_order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const ir::Node& node = graph.node(*id);
    const bool used = std::ranges::any_of(
        node.outputs, [&](ir::ValueId output) { return needed[index_of(output)]; });
    for (ir::ValueId input : node.inputs) {
      if (used) needed[index_of(input)] = true;
    }
  }
  return needed;
}

}  // namespace

std::optional<std::string> batch_in_values(const ir::Graph& graph, const ir::Graph& other,
                                           std::span<const int> output_axes) {
  const Constants others(other);
  for (size_t i = 0; i < output_axes.size(); ++i) {
    const ir::ValueId here = graph.outputs()[i], there = other.outputs()[i];
    if (output_axes[i] >= 0) continue;
    if (graph.type(here) == other.type(there) && !others.differ_from(graph.value(here))) continue;
    return "output '" + graph.output_name(i) +
           "' depends on the size of the batch, not on its rows";
  }
  const std::vector<bool> needed = needed_values(graph);
  for (ir::NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    for (ir::ValueId input : node.inputs) {
      if (!needed[index_of(input)] || !others.differ_from(graph.value(input))) continue;
      const std::string name = node.origins.empty() ? node.name : node.origins.front();
      return "node '" + name + "' computes with the size of the batch";
    }
  }
  return std::nullopt;
}

}  // namespace kiln
