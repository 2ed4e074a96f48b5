#include "formats/onnx/encode_node.h"

#include "formats/onnx/element_type.h"

namespace kiln::onnx {
namespace {

using ::onnx::AttributeProto;

void encode_tensor(const Tensor& tensor, ::onnx::TensorProto* proto) {
  proto->set_name(tensor.name);
  proto->set_data_type(number_of(tensor.type.dtype));
  for (int64_t extent : tensor.type.shape) proto->add_dims(extent);
  proto->set_raw_data(tensor.data.data(), tensor.data.size());
}

// Fills the field of one kind of value and returns its type; no overload for what stays unencoded.
struct ValueEncoder {
  AttributeProto* proto;

  AttributeProto::AttributeType operator()(int64_t value) const {
    proto->set_i(value);
    return AttributeProto::INT;
  }
  AttributeProto::AttributeType operator()(float value) const {
    proto->set_f(value);
    return AttributeProto::FLOAT;
  }
  AttributeProto::AttributeType operator()(const std::string& value) const {
    proto->set_s(value);
    return AttributeProto::STRING;
  }
  AttributeProto::AttributeType operator()(const Tensor& value) const {
    encode_tensor(value, proto->mutable_t());
    return AttributeProto::TENSOR;
  }
  AttributeProto::AttributeType operator()(const std::vector<int64_t>& values) const {
    for (int64_t value : values) proto->add_ints(value);
    return AttributeProto::INTS;
  }
  AttributeProto::AttributeType operator()(const std::vector<float>& values) const {
    for (float value : values) proto->add_floats(value);
    return AttributeProto::FLOATS;
  }
  AttributeProto::AttributeType operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) proto->add_strings(value);
    return AttributeProto::STRINGS;
  }
  AttributeProto::AttributeType operator()(const std::vector<Tensor>& values) const {
    for (const Tensor& value : values) encode_tensor(value, proto->add_tensors());
    return AttributeProto::TENSORS;
  }
  template <class Other>
  AttributeProto::AttributeType operator()(const Other&) const {
    return AttributeProto::UNDEFINED;
  }
};

}  // namespace

Result<::onnx::NodeProto> encode_node(const Node& node) {
  ::onnx::NodeProto proto;
  proto.set_name(node.name);
  proto.set_op_type(node.op_type);
  proto.set_domain(node.domain);
  for (const std::string& input : node.inputs) proto.add_input(input);
  for (const std::string& output : node.outputs) proto.add_output(output);
  for (const Attribute& attribute : node.attributes) {
    AttributeProto* encoded = proto.add_attribute();
    encoded->set_name(attribute.name);
    const auto type = std::visit(ValueEncoder{encoded}, attribute.value);
    if (type == AttributeProto::UNDEFINED) {
      return Error{ErrorCode::kUnsupported, "attribute '" + attribute.name + "' is of type " +
                                                std::string(to_string(kind_of(attribute))) +
                                                ", which no function body can take"};
    }
    encoded->set_type(type);
  }
  return proto;
}

::onnx::TypeProto encode_type(const ValueInfo& info) {
  ::onnx::TypeProto proto;
  if (!info.dtype) return proto;
  auto* tensor = proto.mutable_tensor_type();
  tensor->set_elem_type(number_of(*info.dtype));
  if (!info.shape) return proto;
  auto* shape = tensor->mutable_shape();
  for (const Dim& dim : *info.shape) {
    auto* encoded = shape->add_dim();
    if (dim.extent) {
      encoded->set_dim_value(*dim.extent);
    } else if (!dim.symbol.empty()) {
      encoded->set_dim_param(dim.symbol);
    }
  }
  return proto;
}

}  // namespace kiln::onnx
