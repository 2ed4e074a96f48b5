// Graph::verify and Graph::fingerprint: the invariants that hold between passes.
#include <xxhash.h>

#include <algorithm>

#include "builder/ir/graph.h"

namespace kiln::ir {
namespace {

Error broken(const std::string& what) {
  return {ErrorCode::kInternal, "graph is inconsistent: " + what + "; please report this"};
}

std::string value_label(ValueId id) { return "value %" + std::to_string(index_of(id)); }

Result<> check_value(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (!checked_element_count(value.type.shape)) {
    return broken(value_label(id) + " has the impossible type " + to_string(value.type));
  }
  if (value.constant && static_cast<int64_t>(value.constant->size()) != value.type.bytes()) {
    return broken(value_label(id) + " is " + to_string(value.type) + " but its constant has " +
                  std::to_string(value.constant->size()) + " bytes");
  }
  if (value.constant && value.producer != kNoNode) {
    return broken(value_label(id) + " is both constant and produced");
  }
  for (const Use& use : value.uses) {
    const Node& user = graph.node(use.node);
    if (user.erased || use.slot >= user.inputs.size() || user.inputs[use.slot] != id) {
      return broken(value_label(id) + " lists a use that node '" + user.name + "' does not have");
    }
  }
  return Ok();
}

Result<> check_node(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<TensorType> inputs;
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const Value& value = graph.value(node.inputs[slot]);
    inputs.push_back(value.type);
    if (value.producer != kNoNode && graph.node(value.producer).erased) {
      return broken("node '" + node.name + "' reads a value of an erased node");
    }
    if (std::find(value.uses.begin(), value.uses.end(), Use{id, slot}) == value.uses.end()) {
      return broken("node '" + node.name + "' is missing among the uses of its input " +
                    std::to_string(slot));
    }
  }
  for (ValueId output : node.outputs) {
    if (graph.value(output).producer != id) {
      return broken("an output of node '" + node.name + "' names another producer");
    }
  }
  if (std::holds_alternative<PluginCall>(node.op)) return Ok();  // only the plugin knows its types
  auto types = infer_types(node.op, inputs);
  if (!types.ok()) return std::move(types).error().context("node '" + node.name + "'");
  if (types->size() != node.outputs.size()) {
    return broken("node '" + node.name + "' has " + std::to_string(node.outputs.size()) +
                  " outputs, its op has " + std::to_string(types->size()));
  }
  for (size_t i = 0; i < types->size(); ++i) {
    if ((*types)[i] != graph.type(node.outputs[i])) {
      return broken("output " + std::to_string(i) + " of node '" + node.name + "' is " +
                    to_string(graph.type(node.outputs[i])) + ", its op gives " +
                    to_string((*types)[i]));
    }
  }
  return Ok();
}

class Hash {
 public:
  Hash() { XXH3_64bits_reset(&state_); }
  void add(const void* data, size_t size) { XXH3_64bits_update(&state_, data, size); }
  void add(uint64_t number) { add(&number, sizeof number); }
  void add(const std::string& text) {
    add(text.size());
    add(text.data(), text.size());
  }
  uint64_t digest() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

void hash_op(Hash& hash, const Op& op) {
  hash.add(op.index());
  if (const auto operation = operation_of(op)) {
    hash.add(encode(*operation));
  } else if (const auto* plugin = std::get_if<PluginCall>(&op)) {
    for (const auto* text : {&plugin->name, &plugin->version, &plugin->attributes}) hash.add(*text);
  } else if (const auto* branch = std::get_if<If>(&op)) {
    hash.add(branch->then_body->fingerprint());
    hash.add(branch->else_body->fingerprint());
  } else if (const auto* loop = std::get_if<Loop>(&op)) {
    hash.add(loop->body->fingerprint());
    hash.add(static_cast<uint64_t>(loop->carried));
    hash.add(static_cast<uint64_t>(loop->trip_count));
  } else if (const auto* region = std::get_if<Region>(&op)) {
    hash.add(static_cast<uint64_t>(region->kind));
    hash.add(region->body->fingerprint());
  }
}

}  // namespace

Result<> Graph::verify() const {
  for (uint32_t i = 0; i < values_.size(); ++i) {
    const NodeId producer = values_[i].producer;
    if (producer != kNoNode && node(producer).erased) continue;
    KILN_RETURN_IF_ERROR(check_value(*this, ValueId{i}));
  }
  size_t live = 0;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].erased) continue;
    ++live;
    KILN_RETURN_IF_ERROR(check_node(*this, NodeId{i}));
  }
  if (topological_order().size() != live) return broken("there is a cycle");
  for (ValueId id : outputs_) {
    const NodeId producer = value(id).producer;
    if (producer != kNoNode && node(producer).erased) {
      return broken("an output is made by erased node '" + node(producer).name + "'");
    }
  }
  return Ok();
}

uint64_t Graph::fingerprint() const {
  Hash hash;
  std::vector<uint64_t> number(values_.size(), UINT64_MAX);
  uint64_t next = 0;
  const auto visit = [&](ValueId id) {
    uint64_t& n = number[index_of(id)];
    if (n == UINT64_MAX) {  // first seen: an input or a constant
      n = next++;
      hash.add(to_string(type(id)));
      if (value(id).constant) {
        hash.add(XXH3_64bits(value(id).constant->data(), value(id).constant->size()));
      }
    }
    hash.add(n);
  };
  for (ValueId id : inputs_) visit(id);
  for (NodeId id : topological_order()) {
    const Node& current = node(id);
    hash_op(hash, current.op);
    hash.add(current.inputs.size());
    for (ValueId input : current.inputs) visit(input);
    for (ValueId output : current.outputs) {
      number[index_of(output)] = next++;
      hash.add(to_string(type(output)));
    }
  }
  for (ValueId id : outputs_) visit(id);
  return hash.digest();
}

}  // namespace kiln::ir
