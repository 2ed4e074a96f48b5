#include "builder/verify/incremental_reference.h"

#include <xxhash.h>

namespace kiln {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

uint64_t hash_of(const std::vector<uint64_t>& words) {
  return XXH3_64bits(words.data(), words.size() * sizeof(uint64_t));
}

// The content of a node's operation; its attributes are those of a graph that holds it alone.
uint64_t operation_hash(const Graph& graph, NodeId id) {
  const ir::Node& node = graph.node(id);
  if (const auto* region = std::get_if<ir::Region>(&node.op)) return region->body->fingerprint();
  return ir::extract(graph, std::span(&id, 1), node.outputs).graph.fingerprint();
}

}  // namespace

class IncrementalReference::Run {
 public:
  Run(IncrementalReference& owner, const Graph& graph, bool remember)
      : owner_(owner), graph_(graph), remember_(remember) {
    keys_.resize(graph.value_count());
    values_.resize(graph.value_count());
  }

  Result<std::vector<HostTensor>> run() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId id = graph_.inputs()[i];
      const DType dtype = graph_.type(id).dtype;
      KILN_ASSIGN_OR_RETURN(values_[index_of(id)], convert_tensor(owner_.inputs_[i], dtype));
      keys_[index_of(id)] = hash_of({i, static_cast<uint64_t>(dtype)});
    }
    for (NodeId id : graph_.topological_order()) KILN_RETURN_IF_ERROR(run_node(id));
    std::vector<HostTensor> outputs;
    for (ValueId output : graph_.outputs()) outputs.push_back(value_of(output));
    return outputs;
  }

 private:
  HostTensor value_of(ValueId id) const {
    const ir::Value& value = graph_.value(id);
    if (value.constant) return {value.type, *value.constant};
    return values_[index_of(id)];
  }

  uint64_t key_of(ValueId id) {
    const ir::Value& value = graph_.value(id);
    if (!value.constant) return keys_[index_of(id)];
    if (remember_) owner_.constants_.push_back(*value.constant);
    return hash_of({reinterpret_cast<uintptr_t>(value.constant->data()), value.constant->size(),
                    static_cast<uint64_t>(value.type.dtype)});
  }

  Result<> run_node(NodeId id) {
    const ir::Node& node = graph_.node(id);
    std::vector<uint64_t> words{operation_hash(graph_, id)};
    for (ValueId input : node.inputs) words.push_back(key_of(input));
    bool known = true;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      words.push_back(i);
      const uint64_t key = keys_[index_of(node.outputs[i])] = hash_of(words);
      const auto found = owner_.known_.find(key);
      known = known && found != owner_.known_.end();
      if (known) values_[index_of(node.outputs[i])] = found->second;
    }
    return known ? Ok() : compute(node);
  }

  Result<> compute(const ir::Node& node) {
    std::vector<HostTensor> arguments;
    for (ValueId input : node.inputs) arguments.push_back(value_of(input));
    std::vector<TensorType> types;
    for (ValueId output : node.outputs) types.push_back(graph_.type(output));
    auto results = run_reference_op(node.op, arguments, types, owner_.options_);
    if (!results.ok()) {
      return std::move(results).error().context("node '" + node.name + "'");
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const uint32_t at = index_of(node.outputs[i]);
      values_[at] = std::move((*results)[i]);
      if (remember_) owner_.known_[keys_[at]] = values_[at];
    }
    return Ok();
  }

  IncrementalReference& owner_;
  const Graph& graph_;
  bool remember_;
  std::vector<uint64_t> keys_;      // by value
  std::vector<HostTensor> values_;  // by value
};

Result<std::vector<HostTensor>> IncrementalReference::run(const Graph& graph, bool remember) {
  return Run(*this, graph, remember).run();
}

}  // namespace kiln
