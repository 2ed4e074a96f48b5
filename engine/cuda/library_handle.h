// LibraryHandle: cuBLASLt's or cuDNN's handle of one device, made when it is first asked for.
#pragma once
#include <atomic>
#include <mutex>
#include <string>

#include "engine/cuda/device.h"

namespace kiln::cuda {

template <class Api, class Handle>
class LibraryHandle {
 public:
  using Open = Result<const Api*> (Libraries::*)() const;

  // `name`: "cuDNN", as messages say it.
  LibraryHandle(const Device& device, Open open, const char* name)
      : device_(device), open_(open), name_(name) {}
  ~LibraryHandle() {
    if (handle_ == nullptr) return;
    const CurrentDevice current(device_);
    api_->destroy(handle_);
  }
  LibraryHandle(const LibraryHandle&) = delete;
  LibraryHandle& operator=(const LibraryHandle&) = delete;

  // The functions; opens the library at the first call. Thread-safe.
  Result<const Api*> api() const { return (device_.libraries().*open_)(); }

  // What work(api, handle) gives, with the device current. Makes the handle at the first call; it
  // takes device memory. Thread-safe: one thread at a time works with the handle, as cuDNN demands,
  // so `work` must not keep it.
  template <class Work>
  auto use(const Work& work) -> decltype(work(std::declval<const Api&>(), Handle{})) {
    const CurrentDevice current(device_);
    if (!made_) KILN_RETURN_IF_ERROR(make());
    const std::lock_guard lock(mutex_);
    return work(*api_, handle_);
  }

 private:
  // Takes the locks in the order of those who capture calls of a handle that is made.
  Result<> make() {
    const auto captures = device_.lock_capture();
    const std::lock_guard lock(mutex_);
    if (made_) return Ok();
    KILN_ASSIGN_OR_RETURN(const Api* api, this->api());
    Handle handle = nullptr;
    KILN_RETURN_IF_ERROR(
        check(*api, api->create(&handle), std::string("making a handle of ") + name_));
    auto bound = bind(*api, handle);
    if (!bound) {
      api->destroy(handle);
      return bound;
    }
    api_ = api;
    handle_ = handle;
    made_ = true;
    return Ok();
  }

  // REQUIRES: nothing is being captured.
  Result<> bind(const Api& api, Handle handle) const {
    if constexpr (requires { api.set_stream; }) {
      return check(api, api.set_stream(handle, device_.capture_stream()),
                   std::string("giving ") + name_ + " a stream");
    } else {
      return Ok();
    }
  }

  const Device& device_;
  const Open open_;
  const char* const name_;
  std::mutex mutex_;
  std::atomic<bool> made_ = false;
  const Api* api_ = nullptr;  // set with the handle
  Handle handle_ = nullptr;
};

}  // namespace kiln::cuda
