// Memory: a block from the system, for arenas.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "formats/result.h"

namespace kiln {

// Zeroed, aligned to a page, given back when it goes. Pages that are never touched cost nothing.
class Memory {
 public:
  // kOutOfMemory if the system refuses. 0 bytes give a null block.
  static Result<Memory> allocate(uint64_t bytes);

  Memory() = default;
  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Memory();

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace kiln
