#include "builder/cuda/cuda_target.h"

#include "builder/codegen/cuda/compile.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/tactics/cuda/gpu_trial_tensors.h"
#include "builder/verify/cuda/gpu_reference.h"
#include "engine/cuda/library_handle.h"

namespace kiln {
namespace {

// "13.0" for 13000.
std::string version_text(uint32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

DeviceInfo describe(const CudaTools& tools) {
  const cuda::DeviceProperties& gpu = tools.device->properties();
  DeviceInfo info = host_device();
  info.target = plan::Target::kCuda;
  info.name = gpu.name;
  info.compute_capability = gpu.compute_capability;
  info.multiprocessors = gpu.multiprocessors;
  info.memory_bytes = gpu.memory_bytes;
  info.l2_bytes = gpu.l2_bytes;
  info.sm_khz = gpu.sm_khz;
  info.memory_khz = gpu.memory_khz;
  info.memory_bus_bits = gpu.memory_bus_bits;
  info.driver_version = gpu.driver_version;
  info.cuda_version = CUDA_VERSION;
  if (auto compiler = codegen::compiler_version(); compiler.ok()) info.compiler = *compiler;
  if (const auto api = tools.device->cublaslt().api(); api.ok()) {
    info.cublaslt_version = static_cast<uint32_t>((*api)->get_version());
  }
  if (const auto api = tools.device->cudnn().api(); api.ok()) {
    info.cudnn_version = static_cast<uint32_t>((*api)->get_version());
  }
  return info;
}

}  // namespace

Result<CudaTarget> open_cuda_target(int ordinal) {
  CudaTarget target;
  KILN_ASSIGN_OR_RETURN(target.tools.device,
                        cuda::Device::open(ordinal, cuda::Libraries::system()));
  target.tools.compiler =
      std::make_shared<KernelCompiler>(target.tools.device->properties().compute_capability);
  target.device = describe(target.tools);
  target.accelerator = make_gpu_reference(target.tools);
  target.trial_tensors = [tools = target.tools] { return make_gpu_trial_tensors(tools); };
  return target;
}

Result<CudaTarget> describe_cuda_target(const DeviceInfo& device) {
  if (device.cuda_version != CUDA_VERSION) {
    return Error{ErrorCode::kVersionMismatch,
                 "'" + device.name + "' was measured with kernels of CUDA " +
                     version_text(device.cuda_version) + ", this builder compiles with CUDA " +
                     version_text(CUDA_VERSION) +
                     "; use a builder of that version, or measure again with this one"};
  }
  CudaTarget target;
  target.tools.compiler = std::make_shared<KernelCompiler>(device.compute_capability);
  target.device = device;
  if (auto compiler = codegen::compiler_version(); compiler.ok()) {
    target.device.compiler = *compiler;
  }
  return target;
}

}  // namespace kiln
