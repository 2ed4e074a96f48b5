// TensorProto and SparseTensorProto -> Tensor.
#pragma once
#include <onnx/onnx_pb.h>

#include "formats/onnx/external_data.h"
#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

// Moves the raw bytes out of the proto instead of copying them. Errors do not name the tensor: the
// caller knows what it is to the model.
Result<Tensor> decode_tensor(::onnx::TensorProto& proto, ExternalData& external);

// The dense form; refused when that is out of proportion to what is stored.
Result<Tensor> decode_sparse_tensor(::onnx::SparseTensorProto& proto, ExternalData& external);

}  // namespace kiln::onnx
