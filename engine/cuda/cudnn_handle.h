// CudnnHandle: cuDNN's handle of one device, made when it is first asked for.
#pragma once
#include <cuda.h>

#include <mutex>

#include "engine/cuda/cudnn_api.h"
#include "engine/cuda/device.h"

namespace kiln::cuda {

class CudnnHandle {
 public:
  explicit CudnnHandle(const Device& device) : device_(device) {}
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  // Makes the handle at the first call; it takes device memory. Thread-safe.
  Result<cudnnHandle_t> get();
  // The functions; opens the library at the first call. Thread-safe.
  Result<const CudnnApi*> api() const { return device_.libraries().cudnn(); }

  // Executes a finalized plan on `stream`. Thread-safe: the handle's stream is set and used under
  // one lock.
  Result<> execute(cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack,
                   CUstream stream);

 private:
  Result<cudnnHandle_t> get_locked();

  const Device& device_;
  std::mutex mutex_;
  const CudnnApi* cudnn_ = nullptr;  // set with the handle
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace kiln::cuda
