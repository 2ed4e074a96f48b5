#include "engine/cuda/cudnn_handle.h"

namespace kiln::cuda {
namespace {

// While it lives, this thread may load code though a stream is under capture: cuDNN loads a kernel
// when it is first launched.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const DriverApi& driver) : driver_(driver) { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  // Of no consequence if it fails: then the launch does, with its own message.
  void exchange() { driver_.thread_exchange_capture_mode(&mode_); }

  const DriverApi& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace

CudnnHandle::~CudnnHandle() {
  if (handle_ == nullptr) return;
  const CurrentDevice current(*device_);
  cudnn_->destroy(handle_);
}

Result<cudnnHandle_t> CudnnHandle::get() {
  const std::lock_guard lock(mutex_);
  return get_locked();
}

Result<cudnnHandle_t> CudnnHandle::get_locked() {
  if (handle_ != nullptr) return handle_;
  KILN_ASSIGN_OR_RETURN(const CudnnApi* cudnn, api());
  const CurrentDevice current(*device_);
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
  const CurrentDevice current(*device_);
  const RelaxedCapture relaxed(device_->driver());
  KILN_RETURN_IF_ERROR(check(*cudnn_, cudnn_->set_stream(handle, stream), "giving cuDNN a stream"));
  return check(*cudnn_, cudnn_->execute(handle, plan, variant_pack), "executing a cuDNN plan");
}

}  // namespace kiln::cuda
