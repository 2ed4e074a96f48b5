// Owned: a driver object that is destroyed when it goes, with its device current.
#pragma once
#include <memory>
#include <utility>

#include "engine/cuda/device.h"

namespace kiln::cuda {

template <class T, auto Destroy>
class Owned {
 public:
  Owned() = default;
  Owned(std::shared_ptr<const Device> device, T object)
      : device_(std::move(device)), object_(object) {}
  Owned(Owned&& other) noexcept
      : device_(std::move(other.device_)), object_(std::exchange(other.object_, T{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
    if (object_ == T{}) return;
    const CurrentDevice current(*device_);
    (device_->driver().*Destroy)(object_);
  }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != T{}; }

 private:
  std::shared_ptr<const Device> device_;
  T object_{};
};

using DeviceMemory = Owned<CUdeviceptr, &DriverApi::mem_free>;
using HostMemory = Owned<void*, &DriverApi::mem_free_host>;  // page-locked
using Module = Owned<CUmodule, &DriverApi::module_unload>;
using OwnedStream = Owned<CUstream, &DriverApi::stream_destroy>;
using Event = Owned<CUevent, &DriverApi::event_destroy>;
using Graph = Owned<CUgraph, &DriverApi::graph_destroy>;
using GraphExec = Owned<CUgraphExec, &DriverApi::graph_exec_destroy>;

// Each makes its device current. 0 bytes give no memory. kOutOfMemory says for what and how much
// is free.
Result<DeviceMemory> allocate(const std::shared_ptr<const Device>& device, uint64_t bytes,
                              const char* what);
Result<HostMemory> allocate_host(const std::shared_ptr<const Device>& device, uint64_t bytes);
Result<OwnedStream> create_stream(const std::shared_ptr<const Device>& device);
// With timing: for elapsed times; without: for order alone, cheaper.
Result<Event> create_event(const std::shared_ptr<const Device>& device, bool timing);

}  // namespace kiln::cuda
