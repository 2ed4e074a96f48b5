// What state a GPU is in while it is measured, and when that spoils the figures.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/engine-run/nvml_api.h"

namespace kiln::run {

// 0 where the GPU does not tell.
struct GpuState {
  unsigned sm_mhz = 0, most_sm_mhz = 0, memory_mhz = 0, most_memory_mhz = 0;
  unsigned temperature_c = 0;
  double power_w = 0;
  uint64_t slowdowns = 0;  // why the clocks are low, as NVML's bits
  unsigned processes = 0;  // that compute on it, this one among them
};

// A GPU that can be asked.
class GpuMonitor {
 public:
  // `pci_address` as in EngineInfo. kUnsupported with NVML's number where it knows no such GPU.
  static Result<GpuMonitor> open(const NvmlApi& nvml, const std::string& pci_address);
  // Takes the driver up to a millisecond.
  GpuState read() const;

 private:
  GpuMonitor(const NvmlApi& nvml, void* device) : nvml_(nvml), device_(device) {}
  NvmlApi nvml_;
  void* device_ = nullptr;
};

// "the power limit, heat"; "" for reasons that spoil nothing, as a GPU that is idle.
std::string slowdown_text(uint64_t slowdowns);
// "SM 1980 of 1980 MHz, memory 3201 of 3201 MHz, 45 C, 310 W".
std::string to_text(const GpuState& state);

inline constexpr double kMostClockChange = 0.02;  // of the SM clock, between begin and end

// One line for each reason why figures taken between two states can't be trusted.
std::vector<std::string> clock_warnings(const GpuState& begin, const GpuState& end);

}  // namespace kiln::run
