#include "engine/context/memory.h"

#include <sys/mman.h>

#include <string>

namespace kiln {

Result<Memory> Memory::allocate(uint64_t bytes) {
  Memory memory;
  if (bytes == 0) return memory;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return Error{ErrorCode::kOutOfMemory, "the system has no " + std::to_string(bytes) +
                                              " bytes; use fewer contexts or build for smaller "
                                              "batches"};
  }
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace kiln
