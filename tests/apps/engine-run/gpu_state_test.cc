#include "apps/engine-run/gpu_state.h"

#include <gtest/gtest.h>

#include <string_view>

namespace kiln::run {
namespace {

// A GPU at "0000:0f:00.0" that answers all but one question: its temperature.
NvmlApi fake_nvml() {
  static int gpu = 0;
  NvmlApi api;
  api.init = [] { return kNvmlSuccess; };
  api.device_by_pci_address = [](const char* address, void** device) {
    *device = &gpu;
    return std::string_view(address) == "0000:0f:00.0" ? kNvmlSuccess : 6;
  };
  api.clock_mhz = [](void* device, int clock, unsigned* mhz) {
    *mhz = clock == kNvmlClockSm ? 1700 : 2600;
    return device == &gpu ? kNvmlSuccess : 2;
  };
  api.most_clock_mhz = [](void*, int clock, unsigned* mhz) {
    *mhz = clock == kNvmlClockSm ? 1980 : 3201;
    return kNvmlSuccess;
  };
  api.slowdown_reasons = [](void*, unsigned long long* reasons) {
    *reasons = 0x4 | 0x1;
    return kNvmlSuccess;
  };
  api.temperature_c = [](void*, int, unsigned* degrees) {
    *degrees = 999;
    return 3;
  };
  api.power_mw = [](void*, unsigned* milliwatts) {
    *milliwatts = 699'600;
    return kNvmlSuccess;
  };
  api.processes = [](void*, unsigned* count, void*) {
    *count = 3;
    return kNvmlInsufficientSize;
  };
  return api;
}

TEST(GpuMonitor, ReadsWhatTheGpuTells) {
  const auto monitor = GpuMonitor::open(fake_nvml(), "0000:0f:00.0");
  ASSERT_TRUE(monitor.ok()) << monitor.error().message;
  const GpuState state = monitor->read();
  EXPECT_EQ(state.sm_mhz, 1700u);
  EXPECT_EQ(state.most_memory_mhz, 3201u);
  EXPECT_EQ(state.temperature_c, 0u);
  EXPECT_EQ(state.processes, 3u);
  EXPECT_EQ(to_text(state),
            "SM 1700 of 1980 MHz, memory 2600 of 3201 MHz, 700 W, held back by the power limit");
}

TEST(GpuMonitor, SaysThatItDoesNotKnowAGpu) {
  const auto monitor = GpuMonitor::open(fake_nvml(), "0000:aa:00.0");
  ASSERT_FALSE(monitor.ok());
  EXPECT_NE(monitor.error().message.find("error 6 for the GPU at '0000:aa:00.0'"),
            std::string::npos)
      << monitor.error().message;
}

TEST(ClockWarnings, AreForWhatMovedAndWhoShares) {
  GpuState steady{.sm_mhz = 1980, .memory_mhz = 3201, .slowdowns = 0x1, .processes = 1};
  EXPECT_TRUE(clock_warnings(steady, steady).empty());
  EXPECT_TRUE(clock_warnings({}, {}).empty());
  GpuState slower = steady;
  slower.sm_mhz = 1905;
  slower.slowdowns = 0x20;
  slower.processes = 2;
  const auto warnings = clock_warnings(steady, slower);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_NE(warnings[0].find("SM clock went from 1980 to 1905 MHz"), std::string::npos);
  EXPECT_EQ(warnings[1], "the GPU was held back by heat");
  EXPECT_EQ(warnings[2], "the GPU is shared: 2 processes compute on it");
}

}  // namespace
}  // namespace kiln::run
