// DeviceInfo: what an engine is built for and what tactics were measured on.
#pragma once
#include <cstdint>
#include <string>

#include "formats/engine_file/plan.h"

namespace kiln {

struct DeviceInfo {
  plan::Target target = plan::Target::kHost;
  std::string name;                 // "NVIDIA H200"; the CPU's name on the host
  uint32_t compute_capability = 0;  // 90; 0 on the host
  int threads = 1;                  // the host's
};

// The machine that this process runs on.
DeviceInfo host_device();

}  // namespace kiln
