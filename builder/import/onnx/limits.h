// What a model may ask for.
#pragma once
#include <cstdint>

namespace kiln::onnx_import {

// No value that fits a machine has more elements; a damaged or hostile model's may.
inline constexpr int64_t kMaxElements = int64_t{1} << 36;
inline constexpr int64_t kMaxRank = 32;  // of the host's kernels

}  // namespace kiln::onnx_import
