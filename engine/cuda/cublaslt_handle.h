// CublasLtHandle: cuBLASLt's handle of one device, made when it is first asked for.
#pragma once
#include <mutex>

#include "engine/cuda/cublaslt_api.h"
#include "engine/cuda/device.h"

namespace kiln::cuda {

class CublasLtHandle {
 public:
  explicit CublasLtHandle(const Device& device) : device_(device) {}
  ~CublasLtHandle();
  CublasLtHandle(const CublasLtHandle&) = delete;
  CublasLtHandle& operator=(const CublasLtHandle&) = delete;

  // Makes the handle at the first call. Thread-safe, as the handle itself is.
  Result<cublasLtHandle_t> get();
  // The functions; opens the library at the first call. Thread-safe.
  Result<const CublasLtApi*> api() const { return device_.libraries().cublaslt(); }

 private:
  const Device& device_;
  std::mutex mutex_;
  const CublasLtApi* cublaslt_ = nullptr;  // set with the handle
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace kiln::cuda
