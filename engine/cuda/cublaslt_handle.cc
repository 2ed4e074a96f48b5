#include "engine/cuda/cublaslt_handle.h"

namespace kiln::cuda {

CublasLtHandle::~CublasLtHandle() {
  if (handle_ == nullptr) return;
  const CurrentDevice current(device_);
  cublaslt_->destroy(handle_);
}

Result<cublasLtHandle_t> CublasLtHandle::get() {
  const std::lock_guard lock(mutex_);
  if (handle_ != nullptr) return handle_;
  KILN_ASSIGN_OR_RETURN(const CublasLtApi* cublaslt, api());
  const CurrentDevice current(device_);
  cublasLtHandle_t handle = nullptr;
  KILN_RETURN_IF_ERROR(check(*cublaslt, cublaslt->create(&handle), "making a cuBLASLt handle"));
  cublaslt_ = cublaslt;
  handle_ = handle;
  return handle_;
}

}  // namespace kiln::cuda
