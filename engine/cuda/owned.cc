#include "engine/cuda/owned.h"

#include <string>

namespace kiln::cuda {

Result<DeviceMemory> allocate(const std::shared_ptr<const Device>& device, uint64_t bytes,
                              const char* what) {
  if (bytes == 0) return DeviceMemory();
  const CurrentDevice current(*device);
  CUdeviceptr address = 0;
  const CUresult result = device->driver().mem_alloc(&address, bytes);
  if (result == CUDA_SUCCESS) return DeviceMemory(device, address);
  std::string message = "cuMemAlloc of " + std::to_string(bytes) + " bytes for " + what + " failed";
  size_t free = 0, total = 0;
  if (device->driver().mem_get_info(&free, &total) == CUDA_SUCCESS) {
    message += ", " + std::to_string(free) + " of " + std::to_string(total) + " bytes are free";
  }
  auto failed = device->check(result, message);
  return std::move(failed).error();
}

Result<HostMemory> allocate_host(const std::shared_ptr<const Device>& device, uint64_t bytes) {
  const CurrentDevice current(*device);
  void* address = nullptr;
  KILN_RETURN_IF_ERROR(
      device->check(device->driver().mem_host_alloc(&address, bytes, CU_MEMHOSTALLOC_PORTABLE),
                    "cuMemHostAlloc of " + std::to_string(bytes) + " bytes"));
  return HostMemory(device, address);
}

Result<OwnedStream> create_stream(const std::shared_ptr<const Device>& device) {
  const CurrentDevice current(*device);
  CUstream stream = nullptr;
  KILN_RETURN_IF_ERROR(device->check(
      device->driver().stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  return OwnedStream(device, stream);
}

Result<Event> create_event(const std::shared_ptr<const Device>& device, bool timing) {
  const CurrentDevice current(*device);
  CUevent event = nullptr;
  const unsigned flags = timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  KILN_RETURN_IF_ERROR(
      device->check(device->driver().event_create(&event, flags), "cuEventCreate"));
  return Event(device, event);
}

}  // namespace kiln::cuda
