// Graph is the only IR: a DAG of nodes over single-assignment values with concrete types.
// Ids stay valid until compact(); passes hold ids, never pointers.
// Thread-safety: const methods may run concurrently; others need exclusion.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "builder/ir/op.h"
#include "formats/result.h"
#include "formats/shared_bytes.h"

namespace kiln::ir {

enum class ValueId : uint32_t {};
enum class NodeId : uint32_t {};
inline constexpr NodeId kNoNode{UINT32_MAX};
inline constexpr uint32_t index_of(ValueId id) { return static_cast<uint32_t>(id); }
inline constexpr uint32_t index_of(NodeId id) { return static_cast<uint32_t>(id); }

struct Use {
  NodeId node;
  uint32_t slot;
  friend bool operator==(const Use&, const Use&) = default;
};

struct Value {
  std::string name;  // the model's name where it has one
  TensorType type;
  NodeId producer = kNoNode;  // kNoNode for inputs and constants
  uint32_t producer_slot = 0;
  std::vector<Use> uses;                // of live nodes; being a graph output is not a use
  std::optional<SharedBytes> constant;  // dense bytes, type.bytes() long
};

struct Node {
  std::string name;                  // unique enough to be found again in a dump
  std::vector<std::string> origins;  // the ONNX nodes it came from
  Op op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  bool erased = false;
};

class Graph {
 public:
  ValueId add_input(std::string name, TensorType type);
  // REQUIRES: bytes.size() == type.bytes().
  ValueId add_constant(std::string name, TensorType type, SharedBytes bytes);

  // Appends a node; output types come from infer_types(op, inputs, ...). An op that takes its types
  // from elsewhere (PluginCall) is given them. Fails with kInvalidArgument, naming node and types,
  // if the op rejects its inputs.
  Result<NodeId> add_node(std::string name, std::vector<std::string> origins, Op op,
                          std::vector<ValueId> inputs);
  NodeId add_typed_node(std::string name, std::vector<std::string> origins, Op op,
                        std::vector<ValueId> inputs, std::span<const TensorType> output_types);

  void mark_output(ValueId value);
  // The name under which callers know output i; kept whatever value it comes to be.
  void set_output_name(size_t i, std::string name);
  const std::string& output_name(size_t i) const { return output_names_[i]; }
  void set_value_name(ValueId value, std::string name);

  // Every use and every graph output of `from` becomes one of `to`. REQUIRES: same type.
  void replace_uses(ValueId from, ValueId to);
  void set_input(NodeId node, uint32_t slot, ValueId value);  // REQUIRES: same type
  // REQUIRES: no output of the node has uses or is a graph output.
  void erase(NodeId node);
  // Drops erased nodes and unused constants; nodes end up in topological order. Invalidates ids.
  void compact();

  const Node& node(NodeId id) const { return nodes_[index_of(id)]; }
  const Value& value(ValueId id) const { return values_[index_of(id)]; }
  const TensorType& type(ValueId id) const { return value(id).type; }
  // The only output of a node. REQUIRES: it has one.
  ValueId result(NodeId id) const { return node(id).outputs.front(); }
  size_t node_count() const { return nodes_.size(); }  // erased ones included
  size_t value_count() const { return values_.size(); }
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return outputs_; }
  bool is_output(ValueId value) const;
  // Live nodes, producers first; ties keep insertion order.
  std::vector<NodeId> topological_order() const;

  // Checks every invariant in this file; run between passes.
  Result<> verify() const;
  // Content hash of structure, types, ops and constants; names do not count.
  uint64_t fingerprint() const;

 private:
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<std::string> output_names_;
};

// The op as the host kernels know it (engine/host/OPERATIONS.md); the text form prints it too.
// Control flow, regions and plugin calls have no operation: nullopt.
std::optional<Operation> operation_of(const Op& op);
// The inverse; an unknown name is an Opaque if opaque_ops.cc has its row, else an error.
Result<Op> op_from_operation(const Operation& operation);

// Output types of an op, or why it rejects its inputs.
Result<std::vector<TensorType>> infer_types(const Op& op, std::span<const TensorType> inputs);

// Text form of dumps and golden tests; to_text(parse_text(text)) == text. Constants over 16
// elements print as a content hash unless `full_constants`.
std::string to_text(const Graph& graph, bool full_constants = false);
Result<Graph> parse_text(std::string_view text);

// Copies the live nodes in `nodes` (any order) into a new graph: values from outside become inputs,
// in order of first use; one-element constants are copied in; `outputs` become its outputs.
struct Extracted {
  Graph graph;
  std::vector<ValueId> inputs;  // in the source graph, one for each input of `graph`
};
Extracted extract(const Graph& graph, std::span<const NodeId> nodes,
                  std::span<const ValueId> outputs);

// Copies all of `body` into `graph` with its inputs bound to `arguments`; returns its outputs.
std::vector<ValueId> inline_graph(Graph& graph, const Graph& body,
                                  std::span<const ValueId> arguments);

}  // namespace kiln::ir
