#include "apps/engine-run/gpu_state.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace kiln::run {
namespace {

struct Slowdown {
  uint64_t bit;
  const char* text;
};

// Of nvml.h's nvmlClocksEventReason..., those that slow a busy GPU down.
constexpr Slowdown kSlowdowns[] = {{0x4, "the power limit"},
                                   {0x8, "the hardware's protection"},
                                   {0x10, "clocks in step with another GPU"},
                                   {0x20, "heat"},
                                   {0x40, "heat, by the hardware"},
                                   {0x80, "the power supply"}};

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 200> text;
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

std::string clock_text(const char* name, unsigned mhz, unsigned most_mhz) {
  return most_mhz > 0 ? print("%s %u of %u MHz", name, mhz, most_mhz)
                      : print("%s %u MHz", name, mhz);
}

void warn_of_change(const char* name, unsigned begin_mhz, unsigned end_mhz,
                    std::vector<std::string>& warnings) {
  if (begin_mhz == 0 || end_mhz == 0) return;
  const double change = std::fabs(static_cast<double>(end_mhz) / begin_mhz - 1);
  if (change <= kMostClockChange) return;
  warnings.push_back(
      print("the GPU's %s clock went from %u to %u MHz: raise --warmup, or fix the "
            "clocks",
            name, begin_mhz, end_mhz));
}

}  // namespace

Result<GpuMonitor> GpuMonitor::open(const NvmlApi& nvml, const std::string& pci_address) {
  const auto failed = [&](const char* call, int code) {
    return Error{ErrorCode::kUnsupported, std::string(call) + " failed with NVML's error " +
                                              std::to_string(code) + " for the GPU at '" +
                                              pci_address + "'"};
  };
  if (const int code = nvml.init(); code != kNvmlSuccess) return failed("nvmlInit", code);
  void* device = nullptr;
  const int code = nvml.device_by_pci_address(pci_address.c_str(), &device);
  if (code != kNvmlSuccess) return failed("nvmlDeviceGetHandleByPciBusId", code);
  return GpuMonitor(nvml, device);
}

GpuState GpuMonitor::read() const {
  GpuState state;
  const auto get = [](unsigned& value, int code) {
    if (code != kNvmlSuccess) value = 0;
  };
  get(state.sm_mhz, nvml_.clock_mhz(device_, kNvmlClockSm, &state.sm_mhz));
  get(state.memory_mhz, nvml_.clock_mhz(device_, kNvmlClockMemory, &state.memory_mhz));
  get(state.most_sm_mhz, nvml_.most_clock_mhz(device_, kNvmlClockSm, &state.most_sm_mhz));
  get(state.most_memory_mhz,
      nvml_.most_clock_mhz(device_, kNvmlClockMemory, &state.most_memory_mhz));
  get(state.temperature_c, nvml_.temperature_c(device_, 0, &state.temperature_c));
  unsigned milliwatts = 0;
  get(milliwatts, nvml_.power_mw(device_, &milliwatts));
  state.power_w = milliwatts / 1000.0;
  unsigned long long slowdowns = 0;
  if (nvml_.slowdown_reasons(device_, &slowdowns) == kNvmlSuccess) state.slowdowns = slowdowns;
  // Without room for them it tells how many there are.
  unsigned count = 0;
  const int code = nvml_.processes(device_, &count, nullptr);
  if (code == kNvmlSuccess || code == kNvmlInsufficientSize) state.processes = count;
  return state;
}

std::string slowdown_text(uint64_t slowdowns) {
  std::string text;
  for (const Slowdown& slowdown : kSlowdowns) {
    if ((slowdowns & slowdown.bit) != 0)
      text += (text.empty() ? "" : ", ") + std::string(slowdown.text);
  }
  return text;
}

std::string to_text(const GpuState& state) {
  std::string text = clock_text("SM", state.sm_mhz, state.most_sm_mhz) + ", " +
                     clock_text("memory", state.memory_mhz, state.most_memory_mhz);
  if (state.temperature_c > 0) text += print(", %u C", state.temperature_c);
  if (state.power_w > 0) text += print(", %.0f W", state.power_w);
  const std::string slowdowns = slowdown_text(state.slowdowns);
  return slowdowns.empty() ? text : text + ", held back by " + slowdowns;
}

std::vector<std::string> clock_warnings(const GpuState& begin, const GpuState& end) {
  std::vector<std::string> warnings;
  warn_of_change("SM", begin.sm_mhz, end.sm_mhz, warnings);
  warn_of_change("memory", begin.memory_mhz, end.memory_mhz, warnings);
  const std::string slowdowns = slowdown_text(begin.slowdowns | end.slowdowns);
  if (!slowdowns.empty()) warnings.push_back("the GPU was held back by " + slowdowns);
  const unsigned processes = begin.processes > end.processes ? begin.processes : end.processes;
  if (processes > 1) {
    warnings.push_back(print("the GPU is shared: %u processes compute on it", processes));
  }
  return warnings;
}

}  // namespace kiln::run
