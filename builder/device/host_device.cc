#include <fstream>
#include <thread>

#include "builder/device/device.h"

namespace kiln {

DeviceInfo host_device() {
  DeviceInfo device;
  device.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  device.name = "unknown CPU";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    device.name = line.substr(colon + 2);
    break;
  }
  return device;
}

}  // namespace kiln
