// The repairs that give file bytes the layout that Tensor promises.
#pragma once
#include <cstddef>
#include <string>

#include "formats/shared_bytes.h"

namespace kiln::onnx {

// Takes the characters over, without a copy when they are many.
SharedBytes own_string(std::string&& text);
// The bytes themselves, or a copy when they do not start at a multiple of `alignment`, which is at
// most 8.
SharedBytes aligned(SharedBytes bytes, size_t alignment);
// The bytes themselves, or a copy with 1 for every byte above 1.
SharedBytes normalized_bools(SharedBytes bytes);

}  // namespace kiln::onnx
