// Device: one GPU and its primary context, which is also that of programs that use the CUDA
// runtime.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "engine/cuda/libraries.h"

namespace kiln::cuda {

struct DeviceProperties {
  std::string name;  // "NVIDIA H200"
  int ordinal = 0;
  std::string pci_address;          // "0000:1b:00.0"
  uint32_t compute_capability = 0;  // 90
  uint32_t driver_version = 0;      // 13000: the CUDA version that the driver serves
  uint32_t multiprocessors = 0;
  uint32_t shared_bytes_per_block = 0;  // the most that a kernel may opt in to
  uint64_t memory_bytes = 0, l2_bytes = 0;
  uint32_t sm_khz = 0, memory_khz = 0, memory_bus_bits = 0;  // the highest clocks
};

template <class Api, class Handle>
class LibraryHandle;  // library_handle.h
using CublasLtHandle = LibraryHandle<CublasLtApi, cublasLtHandle_t>;
using CudnnHandle = LibraryHandle<CudnnApi, cudnnHandle_t>;

// Immutable, shared by everything that lives on the GPU; thread-safe.
class Device {
 public:
  // The same one to everybody while it is open. kUnsupported: no driver or no such GPU.
  static Result<std::shared_ptr<const Device>> open(int ordinal,
                                                    std::shared_ptr<const Libraries> libraries);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceProperties& properties() const { return properties_; }
  const DriverApi& driver() const { return *driver_; }
  const Libraries& libraries() const { return *libraries_; }
  CublasLtHandle& cublaslt() const { return *cublaslt_; }
  CudnnHandle& cudnn() const { return *cudnn_; }
  // Graphs of all engines are captured in this stream, by one thread at a time. cuDNN's handle is
  // bound to it for good: a handle that is given another stream still touches the one it had, which
  // may be gone by then or under capture.
  CUstream capture_stream() const { return capture_stream_; }
  [[nodiscard]] std::unique_lock<std::mutex> lock_capture() const {
    return std::unique_lock(capture_mutex_);
  }
  // Of a driver call of this device.
  Result<> check(CUresult result, const std::string& what) const {
    return cuda::check(*driver_, result, what);
  }

 private:
  friend class CurrentDevice;
  Device();
  static Result<std::shared_ptr<const Device>> open_new(int ordinal,
                                                        std::shared_ptr<const Libraries> libraries);
  Result<> read_properties(CUdevice device, int ordinal);

  std::shared_ptr<const Libraries> libraries_;
  const DriverApi* driver_ = nullptr;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream capture_stream_ = nullptr;
  mutable std::mutex capture_mutex_;
  DeviceProperties properties_;
  std::unique_ptr<CublasLtHandle> cublaslt_;
  std::unique_ptr<CudnnHandle> cudnn_;
};

// Makes the device the calling thread's current one while it lives. Driver calls need that.
class CurrentDevice {
 public:
  explicit CurrentDevice(const Device& device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  const Device& device_;
  bool pushed_ = false;
};

}  // namespace kiln::cuda
