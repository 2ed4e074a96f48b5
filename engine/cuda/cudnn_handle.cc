#include "engine/cuda/cudnn_handle.h"

namespace kiln::cuda {
CudnnHandle::~CudnnHandle() {
  if (handle_ == nullptr) return;
  const CurrentDevice current(device_);
  cudnn_->destroy(handle_);
}

Result<cudnnHandle_t> CudnnHandle::get() {
  const std::lock_guard lock(mutex_);
  return get_locked();
}

Result<cudnnHandle_t> CudnnHandle::get_locked() {
  if (handle_ != nullptr) return handle_;
  KILN_ASSIGN_OR_RETURN(const CudnnApi* cudnn, api());
  const CurrentDevice current(device_);
  cudnnHandle_t handle = nullptr;
  KILN_RETURN_IF_ERROR(check(*cudnn, cudnn->create(&handle), "making a cuDNN handle"));
  cudnn_ = cudnn;
  handle_ = handle;
  return handle_;
}

Result<> CudnnHandle::execute(cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack,
                              CUstream stream) {
  const std::lock_guard lock(mutex_);
  KILN_ASSIGN_OR_RETURN(const cudnnHandle_t handle, get_locked());
  const CurrentDevice current(device_);
  KILN_RETURN_IF_ERROR(check(*cudnn_, cudnn_->set_stream(handle, stream), "giving cuDNN a stream"));
  return check(*cudnn_, cudnn_->execute(handle, plan, variant_pack), "executing a cuDNN plan");
}

}  // namespace kiln::cuda
