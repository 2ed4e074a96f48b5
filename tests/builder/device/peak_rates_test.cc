#include "builder/device/peak_rates.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

DeviceInfo gpu(const char* name, uint32_t capability) {
  DeviceInfo device;
  device.target = plan::Target::kCuda;
  device.name = name;
  device.compute_capability = capability;
  return device;
}

TEST(PeakRates, AreThePublishedOnes) {
  const report::PeakRates rates = peak_rates(gpu("NVIDIA H200", 90));
  EXPECT_EQ(rates.bytes_per_s, 4.8e12);
  EXPECT_EQ(rates.f32_flops_per_s, 67e12);
  EXPECT_EQ(rates.tf32_flops_per_s, 494e12);
  EXPECT_EQ(rates.f16_flops_per_s, 989e12);
  EXPECT_EQ(rates.byte_flops_per_s, 1979e12);
  EXPECT_EQ(rates.source, "published");
}

// The A100 PCIe 40 GB's attributes give what its data sheet says: 1555 GB/s, 19.5, 156, 312 and 624
// TFLOPS.
TEST(PeakRates, OfOthersFollowFromTheirClocks) {
  DeviceInfo device = gpu("NVIDIA A100-PCIE-40GB", 80);
  device.multiprocessors = 108;
  device.sm_khz = 1'410'000;
  device.memory_khz = 1'215'000;
  device.memory_bus_bits = 5120;
  const report::PeakRates rates = peak_rates(device);
  EXPECT_NEAR(rates.bytes_per_s, 1555e9, 1e9);
  EXPECT_NEAR(rates.f32_flops_per_s, 19.5e12, 0.1e12);
  EXPECT_NEAR(rates.tf32_flops_per_s, 156e12, 1e12);
  EXPECT_NEAR(rates.f16_flops_per_s, 312e12, 1e12);
  EXPECT_NEAR(rates.byte_flops_per_s, 624e12, 1e12);
  EXPECT_EQ(rates.source, "from clocks");
}

TEST(PeakRates, AreUnknownWhereNothingTellsThem) {
  EXPECT_EQ(peak_rates(gpu("a GPU of the future", 200)), report::PeakRates());
  EXPECT_EQ(peak_rates(host_device()), report::PeakRates());
}

}  // namespace
}  // namespace kiln
