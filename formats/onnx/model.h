// The decoded ONNX model: plain data, no semantics, nothing of protobuf.
//
// A Model is immutable after reading and cheap to move; tensors share their bytes, so copies are
// shallow. Reading from several threads is safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/shared_bytes.h"
#include "formats/tensor_type.h"

namespace kiln::onnx {

using kiln::to_string;  // or the one below would hide those of DType and Shape

// A dense row-major tensor, little endian, in DType's layout (bool is 0 or 1 in one byte; 4-bit
// types are packed, low half first). data.size() == type.bytes(); data.data() is aligned to the
// element's size and may be null when the tensor has no elements.
struct Tensor {
  std::string name;
  TensorType type;
  SharedBytes data;

  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
};

struct Dim {
  std::optional<int64_t> extent;  // >= 0
  std::string symbol;             // "batch"; empty when the file names none
};

// A named value's declared type. Everything in it is a claim of the file, not a fact.
struct ValueInfo {
  std::string name;
  std::optional<DType> dtype;             // nullopt: undeclared, or not a dense tensor of a DType
  std::optional<std::vector<Dim>> shape;  // nullopt: unknown rank
  std::string type_text;                  // "float[batch,3]", "sequence(float)"; empty: undeclared
};

struct Graph;

struct Attribute {
  // The alternatives' order is AttributeKind's. A sparse tensor arrives as its dense form.
  using Value = std::variant<std::monostate, int64_t, float, std::string, Tensor,
                             std::shared_ptr<const Graph>, ValueInfo, std::vector<int64_t>,
                             std::vector<float>, std::vector<std::string>, std::vector<Tensor>,
                             std::vector<std::shared_ptr<const Graph>>, std::vector<ValueInfo>>;
  std::string name;
  Value value;            // monostate exactly when `reference` is set
  std::string reference;  // in a function's body: the function's attribute that gives the value
};

enum class AttributeKind : uint8_t {
  kNone,
  kInt,
  kFloat,
  kString,
  kTensor,
  kGraph,
  kType,
  kInts,
  kFloats,
  kStrings,
  kTensors,
  kGraphs,
  kTypes,
};
// "int", "floats", "graph", ...
std::string_view to_string(AttributeKind kind);
inline AttributeKind kind_of(const Attribute& attribute) {
  return static_cast<AttributeKind>(attribute.value.index());
}

struct Node {
  std::string name;  // often empty, not always unique
  std::string op_type;
  std::string domain;  // "" is ONNX's own ("ai.onnx" is read as "")
  std::string overload;
  std::vector<std::string> inputs;   // "" is an omitted optional input
  std::vector<std::string> outputs;  // "" is an output that nobody wants
  std::vector<Attribute> attributes;
};
// nullptr when the node does not have it.
const Attribute* find_attribute(const Node& node, std::string_view name);
// "node 'conv_3' (Conv)", or "node making 'y' (Conv)" for a nameless one: for messages.
std::string describe(const Node& node);

// Reading checks that nodes are in topological order, that each name is made once in its graph,
// and that every name used is made before, here or in an enclosing graph.
struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<ValueInfo> inputs;  // may repeat an initializer's name: that is its default
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_info;
  std::vector<Tensor> initializers;
};

// A function of the model, or the body of one of ONNX's own composite operators.
struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // names without a default
  std::vector<Attribute> defaults;      // attributes with their default
  std::map<std::string, int64_t> opset_imports;
  std::vector<Node> nodes;
};

struct Model {
  std::filesystem::path path;  // empty when it was parsed from memory
  // What was read: the file at `path`, if any, then the external files in order of first use.
  std::vector<SharedBytes> files;
  std::vector<std::filesystem::path> external_paths;  // of those external files
  int64_t ir_version = 0;
  std::string producer;                          // "pytorch 2.5.0"
  std::map<std::string, int64_t> opset_imports;  // domain ("" for ONNX's own) -> version
  Graph graph;
  std::vector<Function> functions;  // their call graph has no cycle
};

}  // namespace kiln::onnx
