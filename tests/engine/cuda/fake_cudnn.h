// A cuDNN without a GPU: descriptors are records of what was set, and any call can be made to fail.
#pragma once
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/cudnn_api.h"

namespace kiln::cuda {

struct FakeCudnnDescriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, std::string> attributes;  // by name, the bytes as they were set
  bool finalized = false;

  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> result(found->second.size() / sizeof(T));
    std::memcpy(result.data(), found->second.data(), result.size() * sizeof(T));
    return result;
  }
  std::string text(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? "" : found->second;
  }
};

// The functions have no argument of ours, so one fake at a time is current.
class FakeCudnn {
 public:
  FakeCudnn() { current() = this; }
  ~FakeCudnn() { current() = nullptr; }

  CudnnApi api() const {
    CudnnApi api;
    api.get_version = [] { return current()->version; };
    api.get_error_string = [](cudnnStatus_t) { return "FAKE_STATUS"; };
    api.get_last_error_string = [](char* text, size_t size) {
      if (size > 0) text[0] = 0;
    };
    api.create = [](cudnnHandle_t* handle) {
      *handle = reinterpret_cast<cudnnHandle_t>(0x10);
      return current()->next();
    };
    api.destroy = [](cudnnHandle_t) {
      current()->stream = nullptr;
      return CUDNN_STATUS_SUCCESS;
    };
    // As the real one does, it touches the stream that the handle had.
    api.set_stream = [](cudnnHandle_t, cudaStream_t stream) {
      const auto* before = reinterpret_cast<const volatile char*>(current()->stream);
      if (before != nullptr) static_cast<void>(*before);
      const cudnnStatus_t status = current()->next();
      if (status == CUDNN_STATUS_SUCCESS) current()->stream = stream;
      return status;
    };
    api.create_descriptor = create_descriptor;
    api.destroy_descriptor = [](cudnnBackendDescriptor_t descriptor) {
      current()->live -= 1;
      delete static_cast<FakeCudnnDescriptor*>(descriptor);
      return CUDNN_STATUS_SUCCESS;
    };
    api.finalize = [](cudnnBackendDescriptor_t descriptor) {
      static_cast<FakeCudnnDescriptor*>(descriptor)->finalized = true;
      return current()->next();
    };
    api.set_attribute = set_attribute;
    api.get_attribute = get_attribute;
    api.execute = [](cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
      current()->executed.emplace_back(*static_cast<FakeCudnnDescriptor*>(plan),
                                       *static_cast<FakeCudnnDescriptor*>(pack));
      return current()->next();
    };
    return api;
  }

  size_t version = 91900;
  int64_t workspace = 0;      // what plans ask for
  std::atomic<int> live = 0;  // descriptors that exist
  std::atomic<int> calls = 0;
  cudaStream_t stream = nullptr;  // of the one handle
  int failing_call = -1;          // this one fails, with `failure`
  cudnnStatus_t failure = CUDNN_STATUS_NOT_SUPPORTED;
  std::vector<std::pair<FakeCudnnDescriptor, FakeCudnnDescriptor>> executed;  // plan, arguments

 private:
  static FakeCudnn*& current() {
    static FakeCudnn* fake = nullptr;
    return fake;
  }
  cudnnStatus_t next() { return calls++ == failing_call ? failure : CUDNN_STATUS_SUCCESS; }

  static cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type,
                                         cudnnBackendDescriptor_t* descriptor) {
    const cudnnStatus_t status = current()->next();
    if (status != CUDNN_STATUS_SUCCESS) return status;
    *descriptor = new FakeCudnnDescriptor{type, {}};
    current()->live += 1;
    return status;
  }
  static size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
      case CUDNN_TYPE_CHAR:
      case CUDNN_TYPE_BOOLEAN:
        return 1;
      case CUDNN_TYPE_INT64:
      case CUDNN_TYPE_DOUBLE:
      case CUDNN_TYPE_VOID_PTR:
      case CUDNN_TYPE_HANDLE:
      case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
      default:
        return 4;
    }
  }
  static cudnnStatus_t set_attribute(cudnnBackendDescriptor_t descriptor,
                                     cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type, int64_t count,
                                     const void* values) {
    const size_t bytes = size_of(type) * static_cast<size_t>(count);
    static_cast<FakeCudnnDescriptor*>(descriptor)->attributes[name] =
        std::string(static_cast<const char*>(values), bytes);
    return current()->next();
  }
  static cudnnStatus_t get_attribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t, int64_t, int64_t* count,
                                     void* values) {
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
      *count = 1;
      std::memcpy(values, &current()->workspace, sizeof current()->workspace);
    }
    return current()->next();
  }
};

}  // namespace kiln::cuda
