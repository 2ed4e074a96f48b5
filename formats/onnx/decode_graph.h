// GraphProto, NodeProto and AttributeProto -> Graph, Node and Attribute.
//
// Protobuf parses at most 100 levels of messages, which bounds the recursion here.
#pragma once
#include <onnx/onnx_pb.h>

#include "formats/onnx/external_data.h"
#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

// These take the bytes of tensors out of the protos. Errors name the node, initializer or value.
Result<Graph> decode_graph(::onnx::GraphProto& proto, ExternalData& external);
Result<Attribute> decode_attribute(::onnx::AttributeProto& proto, ExternalData& external);
Result<Function> decode_function(::onnx::FunctionProto& proto, ExternalData& external);

// Fails when a domain is listed with two versions.
Result<std::map<std::string, int64_t>> decode_opset_imports(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& protos);

AttributeKind decode_kind(::onnx::AttributeProto::AttributeType type);

}  // namespace kiln::onnx
