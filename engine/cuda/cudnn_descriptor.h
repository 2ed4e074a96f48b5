// CudnnDescriptor: an object of cuDNN's backend API, and DescriptorWriter, which fills one.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/cudnn_api.h"

namespace kiln::cuda {

// Owns one descriptor. Those it refers to must outlive it. The table outlives both.
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  CudnnDescriptor(const CudnnApi& cudnn, cudnnBackendDescriptor_t descriptor)
      : cudnn_(&cudnn), descriptor_(descriptor) {}
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept { *this = std::move(other); }
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(cudnn_, other.cudnn_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  Result<int64_t> get_int(cudnnBackendAttributeName_t name, const std::string& what) const;
  // Integers, or enums stored as such; at most `most`.
  Result<std::vector<int64_t>> get_ints(cudnnBackendAttributeName_t name, size_t most,
                                        const std::string& what) const;
  Result<std::string> get_text(cudnnBackendAttributeName_t name, const std::string& what) const;

 private:
  const CudnnApi* cudnn_ = nullptr;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

// Sets attributes, then finalizes; the first error sticks and finish() returns it.
//   DescriptorWriter(cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor x").ints(...).finish()
class DescriptorWriter {
 public:
  DescriptorWriter(const CudnnApi& cudnn, cudnnBackendDescriptorType_t type, std::string what);

  DescriptorWriter& ints(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  DescriptorWriter& number(cudnnBackendAttributeName_t name, int64_t value);
  DescriptorWriter& flag(cudnnBackendAttributeName_t name, bool value);
  DescriptorWriter& real(cudnnBackendAttributeName_t name, double value);  // stored as f64
  DescriptorWriter& descriptor(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  DescriptorWriter& descriptors(cudnnBackendAttributeName_t name,
                                std::span<const cudnnBackendDescriptor_t> values);
  DescriptorWriter& pointers(cudnnBackendAttributeName_t name, std::span<void* const> values);
  DescriptorWriter& handle(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  DescriptorWriter& text(cudnnBackendAttributeName_t name, std::string_view value);
  // Any enum and its cudnnBackendAttributeType_t.
  template <class Enum>
  DescriptorWriter& choice(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                           Enum value) {
    return set(name, type, 1, &value);
  }
  template <class Enum>
  DescriptorWriter& choices(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::span<const Enum> values) {
    return set(name, type, values.size(), values.data());
  }

  Result<CudnnDescriptor> finish();
  // Without finalizing: for descriptors that cuDNN fills (get_attribute needs empty ones).
  Result<CudnnDescriptor> finish_unfinalized();

 private:
  DescriptorWriter& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        size_t count, const void* values);

  const CudnnApi& cudnn_;
  std::string what_;
  CudnnDescriptor descriptor_;
  Result<> state_;
};

}  // namespace kiln::cuda
