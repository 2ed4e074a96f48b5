// The window attributes that convolutions and quantised convolutions share.
#pragma once
#include "builder/import/onnx/node_context.h"
#include "builder/ir/op.h"

namespace kiln::onnx_import {

// Reads strides, dilations, pads, auto_pad, kernel_shape and group of a Conv whose weight has shape
// `weight`; auto_pad becomes explicit pads.
Result<ir::Conv> read_conv(NodeContext& c, const Shape& input, const Shape& weight);

}  // namespace kiln::onnx_import
