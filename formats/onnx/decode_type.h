// TypeProto and ValueInfoProto -> ValueInfo.
#pragma once
#include <onnx/onnx_pb.h>

#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

// What a negative extent means: an error, or, in the hints that tools leave behind, unknown.
enum class NegativeDim : uint8_t { kError, kUnknown };

// A type alone: the result has no name.
Result<ValueInfo> decode_type(const ::onnx::TypeProto& proto, NegativeDim negative);
// Errors do not name the value.
Result<ValueInfo> decode_value_info(const ::onnx::ValueInfoProto& proto, NegativeDim negative);

}  // namespace kiln::onnx
