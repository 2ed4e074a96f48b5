// What plain and quantised matrix products and convolutions share.
#pragma once
#include "builder/import/onnx/node_context.h"
#include "builder/ir/op.h"

namespace kiln::onnx_import {

// numpy.matmul: a vector operand gets an axis of 1, which the result drops.
ValueId numpy_matmul(NodeContext& c, ValueId a, ValueId b);

// Reads strides, dilations, pads, auto_pad, kernel_shape and group of a Conv whose weight has shape
// `weight`; auto_pad becomes explicit pads.
Result<ir::Conv> read_conv(NodeContext& c, const Shape& input, const Shape& weight);

}  // namespace kiln::onnx_import
