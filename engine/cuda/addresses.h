// The driver's addresses are integers, ours are pointers: with unified addressing they are the
// same, for memory of the host and of the device.
#pragma once
#include <cuda.h>

#include <cstddef>

namespace kiln::cuda {

inline CUdeviceptr address_of(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}
inline std::byte* pointer_to(CUdeviceptr address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace kiln::cuda
