#include "formats/onnx/decode_graph.h"

#include "formats/onnx/decode_tensor.h"
#include "formats/onnx/decode_type.h"

namespace kiln::onnx {
namespace {

template <class Protos>
Result<std::vector<ValueInfo>> decode_values(const Protos& protos, const std::string& what) {
  std::vector<ValueInfo> values;
  values.reserve(static_cast<size_t>(protos.size()));
  for (const auto& proto : protos) {
    auto value = decode_value_info(proto);
    if (!value.ok()) {
      return std::move(value).error().context(what + " '" + proto.name() + "'");
    }
    values.push_back(*std::move(value));
  }
  return values;
}

Result<std::vector<Tensor>> decode_initializers(::onnx::GraphProto& proto, ExternalData& external) {
  std::vector<Tensor> tensors;
  const auto add = [&](Result<Tensor> tensor, const std::string& name) -> Result<> {
    if (!tensor.ok()) {
      return std::move(tensor).error().context("initializer '" + name + "'");
    }
    tensors.push_back(*std::move(tensor));
    return Ok();
  };
  tensors.reserve(static_cast<size_t>(proto.initializer_size()) +
                  static_cast<size_t>(proto.sparse_initializer_size()));
  for (auto& tensor : *proto.mutable_initializer()) {
    const std::string name = tensor.name();
    KILN_RETURN_IF_ERROR(add(decode_tensor(tensor, external), name));
  }
  for (auto& tensor : *proto.mutable_sparse_initializer()) {
    const std::string name = tensor.values().name();
    KILN_RETURN_IF_ERROR(add(decode_sparse_tensor(tensor, external), name));
  }
  return tensors;
}

// "ai.onnx" is the long name of the domain "".
std::string canonical_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

template <class Protos>
std::vector<std::string> strings(const Protos& protos) {
  return {protos.begin(), protos.end()};
}

Result<Node> decode_node(::onnx::NodeProto& proto, ExternalData& external) {
  Node node{proto.name(),
            proto.op_type(),
            canonical_domain(proto.domain()),
            proto.overload(),
            strings(proto.input()),
            strings(proto.output()),
            {}};
  node.attributes.reserve(static_cast<size_t>(proto.attribute_size()));
  for (auto& attribute : *proto.mutable_attribute()) {
    auto decoded = decode_attribute(attribute, external);
    if (!decoded.ok()) return std::move(decoded).error().context(describe(node));
    node.attributes.push_back(*std::move(decoded));
  }
  return node;
}

Result<std::vector<Node>> decode_nodes(
    google::protobuf::RepeatedPtrField<::onnx::NodeProto>& protos, ExternalData& external) {
  std::vector<Node> nodes;
  nodes.reserve(static_cast<size_t>(protos.size()));
  for (auto& proto : protos) {
    KILN_ASSIGN_OR_RETURN(Node node, decode_node(proto, external));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

Result<Graph> decode_graph(::onnx::GraphProto& proto, ExternalData& external) {
  Graph graph;
  graph.name = proto.name();
  KILN_ASSIGN_OR_RETURN(graph.inputs, decode_values(proto.input(), "input"));
  KILN_ASSIGN_OR_RETURN(graph.outputs, decode_values(proto.output(), "output"));
  KILN_ASSIGN_OR_RETURN(graph.value_info, decode_values(proto.value_info(), "value"));
  KILN_ASSIGN_OR_RETURN(graph.initializers, decode_initializers(proto, external));
  KILN_ASSIGN_OR_RETURN(graph.nodes, decode_nodes(*proto.mutable_node(), external));
  return graph;
}

Result<Function> decode_function(::onnx::FunctionProto& proto, ExternalData& external) {
  Function function;
  function.name = proto.name();
  function.domain = canonical_domain(proto.domain());
  function.overload = proto.overload();
  function.inputs = strings(proto.input());
  function.outputs = strings(proto.output());
  function.attributes = strings(proto.attribute());
  for (auto& attribute : *proto.mutable_attribute_proto()) {
    KILN_ASSIGN_OR_RETURN(Attribute decoded, decode_attribute(attribute, external));
    function.defaults.push_back(std::move(decoded));
  }
  KILN_ASSIGN_OR_RETURN(function.opset_imports, decode_opset_imports(proto.opset_import()));
  KILN_ASSIGN_OR_RETURN(function.nodes, decode_nodes(*proto.mutable_node(), external));
  return function;
}

Result<std::map<std::string, int64_t>> decode_opset_imports(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& protos) {
  std::map<std::string, int64_t> imports;
  for (const auto& proto : protos) {
    const std::string domain = canonical_domain(proto.domain());
    const auto [found, added] = imports.emplace(domain, proto.version());
    if (!added && found->second != proto.version()) {
      return Error{ErrorCode::kCorruptData, "domain '" + domain + "' is imported at opset " +
                                                std::to_string(found->second) + " and at opset " +
                                                std::to_string(proto.version()) +
                                                ", expected one version"};
    }
  }
  return imports;
}

}  // namespace kiln::onnx
