// TypeProto and ValueInfoProto -> ValueInfo.
#pragma once
#include <onnx/onnx_pb.h>

#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

// A type alone: the result has no name.
Result<ValueInfo> decode_type(const ::onnx::TypeProto& proto);
// Errors do not name the value.
Result<ValueInfo> decode_value_info(const ::onnx::ValueInfoProto& proto);

}  // namespace kiln::onnx
