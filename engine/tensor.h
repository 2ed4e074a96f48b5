// Tensor: a named view of the caller's memory. It owns nothing.
#pragma once
#include <string>

#include "formats/tensor_type.h"

namespace kiln {

enum class MemoryKind : uint8_t { kHost, kDevice };

// Dense, row-major, type.bytes() long, aligned to its element. Inputs are never written.
struct Tensor {
  std::string name;
  TensorType type;
  void* data = nullptr;
  MemoryKind memory = MemoryKind::kHost;
};

// An opaque wrapper of a cudaStream_t; the host target ignores it and runs in the call.
struct Stream {
  void* handle = nullptr;
};

}  // namespace kiln
