#include "formats/onnx/decode_type.h"

#include "formats/onnx/element_type.h"

namespace kiln::onnx {
namespace {

using ::onnx::TensorShapeProto;
using ::onnx::TypeProto;

Result<std::vector<Dim>> decode_shape(const TensorShapeProto& proto) {
  std::vector<Dim> dims;
  dims.reserve(static_cast<size_t>(proto.dim_size()));
  for (const auto& dim : proto.dim()) {
    Dim decoded;
    // "?" is how some exporters write a dimension that they know nothing of; two are not equal.
    if (dim.has_dim_param() && dim.dim_param() != "?") decoded.symbol = dim.dim_param();
    // Some exporters write -1 where ONNX has a dimension without a value.
    if (dim.has_dim_value() && dim.dim_value() != -1) {
      if (dim.dim_value() < 0) {
        return Error{ErrorCode::kCorruptData,
                     "dimension " + std::to_string(dims.size()) + " is " +
                         std::to_string(dim.dim_value()) +
                         ", expected 0 or more, or -1 for one that varies"};
      }
      decoded.extent = dim.dim_value();
    }
    dims.push_back(std::move(decoded));
  }
  return dims;
}

std::string shape_text(const std::vector<Dim>& dims) {
  std::string text;
  for (const Dim& dim : dims) {
    if (!text.empty()) text += ',';
    text += dim.extent ? std::to_string(*dim.extent) : dim.symbol.empty() ? "?" : dim.symbol;
  }
  return "[" + text + "]";
}

std::string type_name(const TypeProto& proto) {
  switch (proto.value_case()) {
    case TypeProto::kTensorType:
      return element_type_name(proto.tensor_type().elem_type());
    case TypeProto::kSequenceType:
      return "sequence(" + type_name(proto.sequence_type().elem_type()) + ")";
    case TypeProto::kOptionalType:
      return "optional(" + type_name(proto.optional_type().elem_type()) + ")";
    case TypeProto::kMapType:
      return "map(" + element_type_name(proto.map_type().key_type()) + "," +
             type_name(proto.map_type().value_type()) + ")";
    case TypeProto::kSparseTensorType:
      return "sparse_tensor(" + element_type_name(proto.sparse_tensor_type().elem_type()) + ")";
    case TypeProto::kOpaqueType:
      return "opaque";
    case TypeProto::VALUE_NOT_SET:
      break;
  }
  return "";
}

}  // namespace

Result<ValueInfo> decode_type(const TypeProto& proto) {
  ValueInfo info;
  info.type_text = type_name(proto);
  if (proto.value_case() != TypeProto::kTensorType) return info;
  const int32_t number = proto.tensor_type().elem_type();
  if (number != 0) {
    const ElementType* element = find_element_type(number);
    if (!element) {
      return Error{ErrorCode::kCorruptData, "data type " + std::to_string(number) + " is unknown"};
    }
    info.dtype = element->dtype;
  }
  if (!proto.tensor_type().has_shape()) return info;
  KILN_ASSIGN_OR_RETURN(info.shape, decode_shape(proto.tensor_type().shape()));
  info.type_text += shape_text(*info.shape);
  return info;
}

Result<ValueInfo> decode_value_info(const ::onnx::ValueInfoProto& proto) {
  KILN_ASSIGN_OR_RETURN(ValueInfo info, decode_type(proto.type()));
  info.name = proto.name();
  return info;
}

}  // namespace kiln::onnx
