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
  // Of a GPU; 0 on the host, versions also where the library is absent.
  uint32_t multiprocessors = 0;
  uint64_t memory_bytes = 0, l2_bytes = 0;
  uint32_t sm_khz = 0, memory_khz = 0, memory_bus_bits = 0;  // the highest clocks
  std::string compiler;  // of kernels: "NVRTC 13.0"; "" where there is none
  uint32_t driver_version = 0, cuda_version = 0, cublaslt_version = 0, cudnn_version = 0;
};

// The machine that this process runs on.
DeviceInfo host_device();

}  // namespace kiln
