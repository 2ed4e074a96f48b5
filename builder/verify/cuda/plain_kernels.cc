#include "builder/verify/cuda/plain_kernels.h"

#include "builder/cuda/kernel_compiler.h"

namespace kiln {

PlainKernels::PlainKernels(const CudaTools& tools, std::string_view text)
    : device_(tools.device), compiler_(tools.compiler), text_(text) {}

Result<> PlainKernels::open() {
  if (module_) return Ok();
  KILN_ASSIGN_OR_RETURN(stream_, cuda::create_stream(device_));
  KILN_ASSIGN_OR_RETURN(cubin_, codegen::compile_plain_cuda(std::string(text_), compiler_->arch()));
  CUmodule module = nullptr;
  KILN_RETURN_IF_ERROR(device_->check(
      device_->driver().module_load_data(&module, cubin_.bytes.data()), "cuModuleLoadData"));
  module_ = cuda::Module(device_, module);
  return Ok();
}

Result<> PlainKernels::copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
  if (bytes == 0) return Ok();
  return device_->check(device_->driver().memcpy_async(to, from, bytes, stream_.get()),
                        "copy for a plain kernel");
}

Result<> PlainKernels::fill(CUdeviceptr at, std::byte value, uint64_t bytes) {
  return device_->check(
      device_->driver().memset_async(at, static_cast<unsigned char>(value), bytes, stream_.get()),
      "fill for a plain kernel");
}

Result<> PlainKernels::synchronize(const char* what) {
  return device_->check(device_->driver().stream_synchronize(stream_.get()), what);
}

Result<> PlainKernels::launch_at(const char* kernel, void* parameters, std::array<unsigned, 2> grid,
                                 std::array<unsigned, 2> block) {
  CUfunction function = nullptr;
  KILN_RETURN_IF_ERROR(device_->check(
      device_->driver().module_get_function(&function, module_.get(), kernel), kernel));
  CUlaunchConfig config = {};
  config.gridDimX = grid[0];
  config.gridDimY = grid[1];
  config.gridDimZ = config.blockDimZ = 1;
  config.blockDimX = block[0];
  config.blockDimY = block[1];
  config.hStream = stream_.get();
  void* arguments[] = {parameters};
  return device_->check(device_->driver().launch_kernel_ex(&config, function, arguments, nullptr),
                        kernel);
}

}  // namespace kiln
