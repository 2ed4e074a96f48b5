#include "builder/kernels/residency.h"

#include <algorithm>

namespace kiln {
namespace {

constexpr int64_t kReserved = 1 << 10;  // shared memory that the driver takes of each block
constexpr int64_t kGranule = 128;       // in which shared memory is given out
constexpr int64_t kRegisters = 64 << 10, kMostRegisters = 255;

// Of a multiprocessor; CUDA programming guide, "technical specifications per compute capability".
int64_t shared_bytes_of(uint32_t compute_capability) {
  switch (compute_capability) {
    case 80:
    case 87:
      return 164 << 10;
    case 90:
    case 100:
    case 103:
    case 110:
      return 228 << 10;
    default:
      return 100 << 10;
  }
}

}  // namespace

int64_t shared_bytes_in_half(uint32_t compute_capability, int64_t blocks) {
  const int64_t share = shared_bytes_of(compute_capability) / (2 * blocks);
  return std::max<int64_t>(share / kGranule * kGranule - kReserved, 0);
}

int64_t registers_in_half(int64_t threads) {
  return std::min(kRegisters / (2 * threads) / 8 * 8, kMostRegisters);
}

}  // namespace kiln
