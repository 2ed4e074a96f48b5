#include <array>

#include "formats/onnx/decode_graph.h"
#include "formats/onnx/decode_tensor.h"
#include "formats/onnx/decode_type.h"

namespace kiln::onnx {
namespace {

using ::onnx::AttributeProto;

template <class T, class Protos, class Decode>
Result<std::vector<T>> decode_each(Protos& protos, const Decode& decode) {
  std::vector<T> values;
  values.reserve(static_cast<size_t>(protos.size()));
  for (auto& proto : protos) {
    KILN_ASSIGN_OR_RETURN(T value, decode(proto));
    values.push_back(std::move(value));
  }
  return values;
}

// The field of each type, in the order of the types' numbers, and whether it holds something.
struct Field {
  AttributeProto::AttributeType type;
  const char* name;
  bool used;
};

std::array<Field, 14> fields(const AttributeProto& proto) {
  return {{{AttributeProto::FLOAT, "f", proto.has_f()},
           {AttributeProto::INT, "i", proto.has_i()},
           {AttributeProto::STRING, "s", proto.has_s()},
           {AttributeProto::TENSOR, "t", proto.has_t()},
           {AttributeProto::GRAPH, "g", proto.has_g()},
           {AttributeProto::FLOATS, "floats", proto.floats_size() > 0},
           {AttributeProto::INTS, "ints", proto.ints_size() > 0},
           {AttributeProto::STRINGS, "strings", proto.strings_size() > 0},
           {AttributeProto::TENSORS, "tensors", proto.tensors_size() > 0},
           {AttributeProto::GRAPHS, "graphs", proto.graphs_size() > 0},
           {AttributeProto::SPARSE_TENSOR, "sparse_tensor", proto.has_sparse_tensor()},
           {AttributeProto::SPARSE_TENSORS, "sparse_tensors", proto.sparse_tensors_size() > 0},
           {AttributeProto::TYPE_PROTO, "tp", proto.has_tp()},
           {AttributeProto::TYPE_PROTOS, "type_protos", proto.type_protos_size() > 0}}};
}

// An absent scalar field is its default (old writers drop zeros), so only other fields are judged.
Result<> check_fields(const AttributeProto& proto) {
  const std::string type(to_string(decode_kind(proto.type())));
  if (type == "none") {
    return Error{ErrorCode::kCorruptData, "has no type that we know, expected one of ONNX's"};
  }
  for (const Field& field : fields(proto)) {
    if (field.used && field.type != proto.type()) {
      return Error{ErrorCode::kCorruptData,
                   "has type " + type + " and a value in field " + field.name};
    }
  }
  return Ok();
}

// Numbers and strings; the types that are messages are decode_value()'s.
Attribute::Value plain_value(AttributeProto& proto) {
  switch (proto.type()) {
    case AttributeProto::FLOAT:
      return proto.f();
    case AttributeProto::INT:
      return proto.i();
    case AttributeProto::STRING:
      return std::move(*proto.mutable_s());
    case AttributeProto::FLOATS:
      return std::vector<float>(proto.floats().begin(), proto.floats().end());
    case AttributeProto::INTS:
      return std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(proto.strings().begin(), proto.strings().end());
    default:
      return {};
  }
}

Result<Attribute::Value> decode_value(AttributeProto& proto, ExternalData& external) {
  const auto tensor = [&](::onnx::TensorProto& t) { return decode_tensor(t, external); };
  const auto sparse = [&](::onnx::SparseTensorProto& t) {
    return decode_sparse_tensor(t, external);
  };
  const auto type = [](::onnx::TypeProto& t) { return decode_type(t); };
  const auto graph = [&](::onnx::GraphProto& g) -> Result<std::shared_ptr<const Graph>> {
    KILN_ASSIGN_OR_RETURN(Graph decoded, decode_graph(g, external));
    return std::shared_ptr<const Graph>(std::make_shared<Graph>(std::move(decoded)));
  };
  const auto value = [](auto&& decoded) -> Result<Attribute::Value> {
    if (!decoded.ok()) return std::forward<decltype(decoded)>(decoded).error();
    return Attribute::Value(*std::forward<decltype(decoded)>(decoded));
  };
  switch (proto.type()) {
    case AttributeProto::TENSOR:
      return value(tensor(*proto.mutable_t()));
    case AttributeProto::GRAPH:
      return value(graph(*proto.mutable_g()));
    case AttributeProto::SPARSE_TENSOR:
      return value(sparse(*proto.mutable_sparse_tensor()));
    case AttributeProto::TYPE_PROTO:
      return value(type(*proto.mutable_tp()));
    case AttributeProto::TENSORS:
      return value(decode_each<Tensor>(*proto.mutable_tensors(), tensor));
    case AttributeProto::GRAPHS:
      return value(decode_each<std::shared_ptr<const Graph>>(*proto.mutable_graphs(), graph));
    case AttributeProto::SPARSE_TENSORS:
      return value(decode_each<Tensor>(*proto.mutable_sparse_tensors(), sparse));
    case AttributeProto::TYPE_PROTOS:
      return value(decode_each<ValueInfo>(*proto.mutable_type_protos(), type));
    default:
      return plain_value(proto);
  }
}

Result<Attribute> decode_unnamed(AttributeProto& proto, ExternalData& external) {
  Attribute attribute;
  attribute.name = proto.name();
  if (proto.has_ref_attr_name() && !proto.ref_attr_name().empty()) {
    attribute.reference = proto.ref_attr_name();
    return attribute;
  }
  KILN_RETURN_IF_ERROR(check_fields(proto));
  KILN_ASSIGN_OR_RETURN(attribute.value, decode_value(proto, external));
  return attribute;
}

}  // namespace

AttributeKind decode_kind(AttributeProto::AttributeType type) {
  switch (type) {
    case AttributeProto::UNDEFINED:
      return AttributeKind::kNone;
    case AttributeProto::FLOAT:
      return AttributeKind::kFloat;
    case AttributeProto::INT:
      return AttributeKind::kInt;
    case AttributeProto::STRING:
      return AttributeKind::kString;
    case AttributeProto::TENSOR:
    case AttributeProto::SPARSE_TENSOR:
      return AttributeKind::kTensor;
    case AttributeProto::GRAPH:
      return AttributeKind::kGraph;
    case AttributeProto::TYPE_PROTO:
      return AttributeKind::kType;
    case AttributeProto::FLOATS:
      return AttributeKind::kFloats;
    case AttributeProto::INTS:
      return AttributeKind::kInts;
    case AttributeProto::STRINGS:
      return AttributeKind::kStrings;
    case AttributeProto::TENSORS:
    case AttributeProto::SPARSE_TENSORS:
      return AttributeKind::kTensors;
    case AttributeProto::GRAPHS:
      return AttributeKind::kGraphs;
    case AttributeProto::TYPE_PROTOS:
      return AttributeKind::kTypes;
  }
  return AttributeKind::kNone;
}

Result<Attribute> decode_attribute(AttributeProto& proto, ExternalData& external) {
  auto attribute = decode_unnamed(proto, external);
  if (attribute.ok()) return attribute;
  return std::move(attribute).error().context("attribute '" + proto.name() + "'");
}

}  // namespace kiln::onnx
