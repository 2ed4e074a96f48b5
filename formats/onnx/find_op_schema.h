// ONNX's own schema object of an operator, for the files that speak to ONNX's library.
#pragma once
#include <onnx/defs/schema.h>

#include <cstdint>
#include <string>

#include "formats/result.h"

namespace kiln::onnx {

// Never null. Errors as find_schema. May throw what ONNX throws.
Result<const ::onnx::OpSchema*> find_op_schema(const std::string& op_type,
                                               const std::string& domain, int64_t opset);

}  // namespace kiln::onnx
