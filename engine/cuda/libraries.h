// The CUDA driver, cuBLASLt and cuDNN as tables of functions. They are opened by name when an
// engine needs them, so the runtime links none of them and runs host engines where they are absent.
#pragma once
#include <memory>

#include "engine/cuda/cublaslt_api.h"
#include "engine/cuda/cudnn_api.h"
#include "engine/cuda/driver_api.h"
#include "engine/cuda/open_devices.h"
#include "formats/result.h"

namespace kiln::cuda {

// Opens each library at most once for each object of this type. Thread-safe. kUnsupported names
// the library, the names tried and the loader's reason.
class Libraries {
 public:
  // The system's, found as the dynamic loader finds libraries. One for the process, as they are.
  static std::shared_ptr<const Libraries> system();

  virtual ~Libraries() = default;
  virtual Result<const DriverApi*> driver() const = 0;
  virtual Result<const CublasLtApi*> cublaslt() const = 0;
  virtual Result<const CudnnApi*> cudnn() const = 0;

  OpenDevices& open_devices() const { return open_devices_; }

 private:
  mutable OpenDevices open_devices_;
};

}  // namespace kiln::cuda
