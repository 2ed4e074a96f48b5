#include "builder/kernels/residency.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(Residency, TwiceTheBlocksFitAndNoMore) {
  constexpr struct {
    uint32_t compute_capability;
    int64_t bytes;
  } kMultiprocessors[] = {{80, 164 << 10}, {86, 100 << 10}, {89, 100 << 10}, {90, 228 << 10}};
  for (const auto& one : kMultiprocessors) {
    for (int64_t blocks = 1; blocks <= 8; ++blocks) {
      // A block's are rounded up to 128 bytes, behind 1 KB of the driver's.
      const int64_t block =
          (shared_bytes_in_half(one.compute_capability, blocks) + 127) / 128 * 128;
      EXPECT_EQ(one.bytes / (block + 1024), 2 * blocks) << one.compute_capability << " " << blocks;
    }
  }
}

TEST(Residency, SharesRegistersOut) {
  EXPECT_EQ(registers_in_half(512), 64);
  EXPECT_EQ(registers_in_half(256), 128);
  EXPECT_EQ(registers_in_half(384), 80);
  EXPECT_EQ(registers_in_half(32), 255);
}

}  // namespace
}  // namespace kiln
