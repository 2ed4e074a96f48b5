#include "apps/engine-run/nvml_api.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

namespace kiln::run {

Result<NvmlApi> open_nvml() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);  // stays open
  if (library == nullptr) {
    const char* reason = dlerror();
    return Error{ErrorCode::kUnsupported, reason != nullptr ? reason : "no libnvidia-ml.so.1"};
  }
  NvmlApi api;
  std::string missing;
  const auto bind = [&](const char* symbol, auto& function) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) missing += std::string(missing.empty() ? "" : ", ") + symbol;
  };
  bind("nvmlInit_v2", api.init);
  bind("nvmlDeviceGetHandleByPciBusId_v2", api.device_by_pci_address);
  bind("nvmlDeviceGetClockInfo", api.clock_mhz);
  bind("nvmlDeviceGetMaxClockInfo", api.most_clock_mhz);
  bind("nvmlDeviceGetCurrentClocksThrottleReasons", api.slowdown_reasons);
  bind("nvmlDeviceGetTemperature", api.temperature_c);
  bind("nvmlDeviceGetPowerUsage", api.power_mw);
  bind("nvmlDeviceGetComputeRunningProcesses_v3", api.processes);
  if (missing.empty()) return api;
  return Error{ErrorCode::kUnsupported, "libnvidia-ml.so.1 has no function " + missing};
}

}  // namespace kiln::run
