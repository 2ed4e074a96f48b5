// Bytes on the heap, and the two repairs that give file bytes the layout that Tensor promises.
#pragma once
#include <cstddef>
#include <string>

#include "formats/onnx/model.h"

namespace kiln::onnx {

// Fresh bytes, writable until they are handed on. Aligned for every element type.
struct OwnedBytes {
  Bytes bytes;
  std::byte* data = nullptr;
};
OwnedBytes allocate_bytes(size_t size);  // zeroed
Bytes own_string(std::string&& text);  // takes the characters over, without a copy if they are many

// The bytes themselves, or a copy when they do not start at a multiple of `alignment`.
Bytes aligned(Bytes bytes, size_t alignment);
// The bytes themselves, or a copy with 1 for every byte above 1.
Bytes normalized_bools(Bytes bytes);

}  // namespace kiln::onnx
