// NodeContext: what the handler of one ONNX operator sees: the node, its inputs, its attributes.
// A handler returns the values of the node's outputs, in order; outputs that the node does not name
// may be left out at the end.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "builder/import/onnx/emitter.h"

namespace kiln::onnx {
struct Attribute;
struct Graph;
struct Node;
}  // namespace kiln::onnx

namespace kiln::onnx_import {

class Importer;
struct Scope;

class NodeContext : public Emitter {
 public:
  NodeContext(Importer& importer, Scope& scope, const onnx::Node& node, int64_t opset,
              std::vector<std::optional<ValueId>> inputs, std::string name,
              std::vector<std::string> origins);

  const onnx::Node& node() const { return *node_; }
  int64_t opset() const { return opset_; }  // of the node's domain
  Importer& importer() { return *importer_; }
  Scope& scope() { return *scope_; }

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const;
  bool has(size_t input) const { return input < inputs_.size() && inputs_[input].has_value(); }
  bool wants(size_t output) const;
  // An absent input is a failure of the node; kNoValue comes back.
  ValueId input(size_t i);
  std::vector<ValueId> inputs();  // all of them; none may be absent
  const TensorType& input_type(size_t i) { return type(input(i)); }

  // Attributes. Absent: the fallback. Of another type: a failure.
  bool has_attribute(std::string_view name) const;
  int64_t get_int(std::string_view name, int64_t fallback);
  double get_float(std::string_view name, double fallback);
  std::string get_string(std::string_view name, std::string_view fallback);
  std::vector<int64_t> get_ints(std::string_view name);
  std::vector<double> get_floats(std::string_view name);
  std::vector<std::string> get_strings(std::string_view name);
  std::optional<HostTensor> get_tensor(std::string_view name);
  const onnx::Graph* get_graph(std::string_view name);
  DType get_dtype(std::string_view name, DType fallback);  // a TensorProto.DataType number

  // Values of an input that must be known at build time (axes, shapes, pads, ...). `what` names it
  // in the error, which says which graph inputs it depends on.
  Result<HostTensor> known(size_t input, std::string_view what);
  Result<std::vector<int64_t>> known_ints(size_t input, std::string_view what);
  Result<std::vector<double>> known_floats(size_t input, std::string_view what);
  Result<int64_t> known_int(size_t input, std::string_view what);

  // Axes given as an attribute before opset `since` and as input `input` from then on; absent: {}.
  // Normalised against `rank`, sorted; repeated or out of range is an error.
  Result<std::vector<int64_t>> axes(size_t input, int64_t since, int64_t rank);
  // -rank <= axis < rank made non-negative.
  Result<int64_t> axis(std::string_view attribute, int64_t fallback, int64_t rank);
  Result<int64_t> normalise_axis(int64_t axis, int64_t rank);
  Result<std::vector<int64_t>> normalise_axes(std::vector<int64_t> axes, int64_t rank);

  // Inputs `indexes` must have one dtype.
  Result<> require_same_dtype(std::span<const ValueId> values);

 private:
  template <class T>
  const T* attribute(std::string_view name, const char* expected);

  Importer* importer_;
  Scope* scope_;
  const onnx::Node* node_;
  int64_t opset_;
  std::vector<std::optional<ValueId>> inputs_;
};

using Outputs = Result<std::vector<ValueId>>;
using ImportFn = Outputs (*)(NodeContext&);

inline Outputs one(ValueId value) { return std::vector<ValueId>{value}; }

// One row of a family's table. Domain "" is ONNX's own.
struct Handler {
  std::string_view domain, op_type;
  ImportFn import;
};

}  // namespace kiln::onnx_import
