// NvmlApi: the functions of NVIDIA's management library that tell a GPU's clocks. Opened by name:
// it comes with the driver, and engine-run works without it.
#pragma once
#include "formats/result.h"

namespace kiln::run {

// As nvml.h declares them, its enumerations as int and its handle as void*.
struct NvmlApi {
  int (*init)() = nullptr;
  int (*device_by_pci_address)(const char* address, void** device) = nullptr;
  int (*clock_mhz)(void* device, int clock, unsigned* mhz) = nullptr;
  int (*most_clock_mhz)(void* device, int clock, unsigned* mhz) = nullptr;
  int (*slowdown_reasons)(void* device, unsigned long long* reasons) = nullptr;
  int (*temperature_c)(void* device, int sensor, unsigned* degrees) = nullptr;
  int (*power_mw)(void* device, unsigned* milliwatts) = nullptr;
  int (*processes)(void* device, unsigned* count, void* infos) = nullptr;
};

inline constexpr int kNvmlSuccess = 0, kNvmlInsufficientSize = 7;
inline constexpr int kNvmlClockSm = 1, kNvmlClockMemory = 2;

// Opens libnvidia-ml.so.1. kUnsupported, with the loader's reason, where there is none.
Result<NvmlApi> open_nvml();

}  // namespace kiln::run
