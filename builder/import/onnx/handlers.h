// The explicit list of operators that import knows; everything else goes through ONNX's function
// bodies, the model's own functions, or a plugin.
//
// To add an operator: a row in its family's file, or a new family here and in handlers.cc.
#pragma once
#include <span>
#include <string_view>

#include "builder/import/onnx/node_context.h"

namespace kiln::onnx_import {

std::span<const Handler> activation_handlers();
std::span<const Handler> attention_handlers();
std::span<const Handler> contraction_handlers();
std::span<const Handler> data_dependent_handlers();  // NonZero, Unique, NMS, ...: known inputs only
std::span<const Handler> einsum_handlers();
std::span<const Handler> generator_handlers();
std::span<const Handler> movement_handlers();
std::span<const Handler> normalization_handlers();
std::span<const Handler> padding_handlers();
std::span<const Handler> pointwise_handlers();
std::span<const Handler> quantization_handlers();
std::span<const Handler> reduction_handlers();
std::span<const Handler> reshape_handlers();
std::span<const Handler> slicing_handlers();

// The long tail: mostly opaque operations.
std::span<const Handler> indexing_handlers();
std::span<const Handler> pooling_handlers();
std::span<const Handler> recurrent_handlers();
std::span<const Handler> resize_handlers();
std::span<const Handler> selection_handlers();
std::span<const Handler> signal_handlers();
std::span<const Handler> vision_handlers();

// nullptr: none.
const Handler* find_handler(std::string_view domain, std::string_view op_type);

}  // namespace kiln::onnx_import
