#include "builder/ir/graph.h"

#include <algorithm>
#include <queue>

namespace kiln::ir {
namespace {

constexpr std::string_view kKindNames[] = {"loop",      "contraction", "convolution",
                                           "attention", "opaque",      "plugin"};

std::string describe(const Graph& graph, std::span<const ValueId> values) {
  std::string text;
  for (ValueId id : values) {
    if (!text.empty()) text += ", ";
    text += to_string(graph.type(id));
  }
  return "(" + text + ")";
}

}  // namespace

std::string_view to_string(Region::Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

ValueId Graph::add_input(std::string name, TensorType type) {
  const ValueId id{static_cast<uint32_t>(values_.size())};
  values_.push_back({.name = std::move(name), .type = std::move(type), .uses = {}, .constant = {}});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string name, TensorType type, SharedBytes bytes) {
  const ValueId id{static_cast<uint32_t>(values_.size())};
  values_.push_back(
      {.name = std::move(name), .type = std::move(type), .uses = {}, .constant = std::move(bytes)});
  return id;
}

Result<NodeId> Graph::add_node(std::string name, std::vector<std::string> origins, Op op,
                               std::vector<ValueId> inputs) {
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (ValueId id : inputs) types.push_back(type(id));
  auto outputs = infer_types(op, types);
  if (!outputs.ok()) {
    return std::move(outputs).error().context("node '" + name + "' " + describe(*this, inputs));
  }
  return add_typed_node(std::move(name), std::move(origins), std::move(op), std::move(inputs),
                        *outputs);
}

NodeId Graph::add_typed_node(std::string name, std::vector<std::string> origins, Op op,
                             std::vector<ValueId> inputs,
                             std::span<const TensorType> output_types) {
  const NodeId id{static_cast<uint32_t>(nodes_.size())};
  std::vector<ValueId> outputs;
  for (uint32_t slot = 0; slot < output_types.size(); ++slot) {
    outputs.push_back(ValueId{static_cast<uint32_t>(values_.size())});
    values_.push_back({.name = {},
                       .type = output_types[slot],
                       .producer = id,
                       .producer_slot = slot,
                       .uses = {},
                       .constant = {}});
  }
  for (uint32_t slot = 0; slot < inputs.size(); ++slot) {
    values_[index_of(inputs[slot])].uses.push_back({id, slot});
  }
  nodes_.push_back(
      {std::move(name), std::move(origins), std::move(op), std::move(inputs), std::move(outputs)});
  return id;
}

void Graph::mark_output(ValueId value) {
  outputs_.push_back(value);
  output_names_.push_back(values_[index_of(value)].name);
}

void Graph::set_output_name(size_t i, std::string name) { output_names_[i] = std::move(name); }

void Graph::set_value_name(ValueId value, std::string name) {
  values_[index_of(value)].name = std::move(name);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  auto& uses = values_[index_of(from)].uses;
  for (const Use& use : uses) {
    nodes_[index_of(use.node)].inputs[use.slot] = to;
    values_[index_of(to)].uses.push_back(use);
  }
  uses.clear();
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

void Graph::set_input(NodeId node, uint32_t slot, ValueId value) {
  ValueId& input = nodes_[index_of(node)].inputs[slot];
  std::erase(values_[index_of(input)].uses, Use{node, slot});
  input = value;
  values_[index_of(value)].uses.push_back({node, slot});
}

void Graph::erase(NodeId id) {
  Node& node = nodes_[index_of(id)];
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    std::erase(values_[index_of(node.inputs[slot])].uses, Use{id, slot});
  }
  node.inputs.clear();
  node.erased = true;
}

bool Graph::is_output(ValueId value) const {
  return std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end();
}

std::vector<NodeId> Graph::topological_order() const {
  std::vector<uint32_t> missing(nodes_.size(), 0);
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].erased) continue;
    for (ValueId input : nodes_[i].inputs) missing[i] += value(input).producer != kNoNode;
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId id{ready.top()};
    ready.pop();
    order.push_back(id);
    for (ValueId output : node(id).outputs) {
      for (const Use& use : value(output).uses) {
        if (--missing[index_of(use.node)] == 0) ready.push(index_of(use.node));
      }
    }
  }
  return order;
}

void Graph::compact() {
  Graph packed;
  std::vector<ValueId> map(values_.size(), ValueId{UINT32_MAX});
  const auto move_value = [&](ValueId id, NodeId producer) {
    Value& old = values_[index_of(id)];
    map[index_of(id)] = ValueId{static_cast<uint32_t>(packed.values_.size())};
    packed.values_.push_back({std::move(old.name),
                              std::move(old.type),
                              producer,
                              old.producer_slot,
                              {},
                              std::move(old.constant)});
  };
  const auto order = topological_order();
  for (ValueId id : inputs_) {
    move_value(id, kNoNode);
    packed.inputs_.push_back(map[index_of(id)]);
  }
  const auto mapped = [&](ValueId id) {
    if (map[index_of(id)] == ValueId{UINT32_MAX}) move_value(id, kNoNode);  // a constant
    return map[index_of(id)];
  };
  for (NodeId id : order) {
    Node& old = nodes_[index_of(id)];
    const NodeId packed_id{static_cast<uint32_t>(packed.nodes_.size())};
    Node moved{std::move(old.name), std::move(old.origins), std::move(old.op), {}, {}};
    for (uint32_t slot = 0; slot < old.inputs.size(); ++slot) {
      moved.inputs.push_back(mapped(old.inputs[slot]));
      packed.values_[index_of(moved.inputs.back())].uses.push_back({packed_id, slot});
    }
    for (ValueId output : old.outputs) {
      move_value(output, packed_id);
      moved.outputs.push_back(map[index_of(output)]);
    }
    packed.nodes_.push_back(std::move(moved));
  }
  for (ValueId id : outputs_) packed.outputs_.push_back(mapped(id));
  packed.output_names_ = std::move(output_names_);
  *this = std::move(packed);
}

}  // namespace kiln::ir
