// Takes the place of builder/cuda where the CUDA Toolkit's headers were not found.
#include "builder/cuda/cuda_target.h"

#include "builder/tactics/cuda/lower_device.h"

namespace kiln {

namespace {

Error absent() {
  return {ErrorCode::kUnsupported,
          "this builder was compiled without target cuda; install the CUDA Toolkit and cuDNN and "
          "compile Kiln again, or use --target host"};
}

}  // namespace

Result<CudaTarget> open_cuda_target(int) { return absent(); }

Result<CudaTarget> describe_cuda_target(const DeviceInfo&) { return absent(); }

std::span<const TacticProvider> cuda_providers() { return {}; }

void compile_ahead(const CudaTools&, int, const std::function<void()>&) {}

Result<> lower_device(const TacticQuery&, Lowered&) {
  return Error{ErrorCode::kUnsupported, "this builder was compiled without target cuda"};
}

}  // namespace kiln
