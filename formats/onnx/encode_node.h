// Node and ValueInfo -> NodeProto and TypeProto, as far as ONNX's library asks for them.
#pragma once
#include <onnx/onnx_pb.h>

#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

// Errors: kUnsupported for attributes that hold graphs or types.
Result<::onnx::NodeProto> encode_node(const Node& node);
// Unset when the type is unknown.
::onnx::TypeProto encode_type(const ValueInfo& info);

}  // namespace kiln::onnx
