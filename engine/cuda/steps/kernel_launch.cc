#include "engine/cuda/steps/kernel_launch.h"

#include <string>

namespace kiln::cuda {
namespace {

// The driver reads as many parameters as the kernel has, whatever the launch brings.
Result<> check_parameters(const DriverApi& driver, CUfunction function, size_t brought) {
  if (driver.func_get_param_info == nullptr) return Ok();
  const auto info = [&](size_t parameter, size_t& bytes) {
    size_t offset = 0;
    return driver.func_get_param_info(function, parameter, &offset, &bytes) == CUDA_SUCCESS;
  };
  size_t bytes = 0;
  if (info(brought, bytes)) {
    return Error{ErrorCode::kCorruptData,
                 "the kernel has more parameters than the step's " + std::to_string(brought)};
  }
  for (size_t i = 0; i < brought && info(i, bytes); ++i) {
    if (bytes == sizeof(CUdeviceptr)) continue;
    return Error{ErrorCode::kCorruptData, "parameter " + std::to_string(i) + " of the kernel has " +
                                              std::to_string(bytes) +
                                              " bytes, expected an address"};
  }
  return Ok();
}

size_t parameters_of(const plan::KernelLaunch& launch) {
  return launch.inputs.size() + launch.outputs.size() + (launch.workspace.bytes > 0 ? 1 : 0);
}

}  // namespace

Result<PreparedKernelLaunch> prepare_step(const plan::KernelLaunch& step,
                                          const DeviceResources& resources) {
  PreparedKernelLaunch prepared{&step, resources.device, nullptr,
                                step.programmatic && resources.programmatic_launch};
  KILN_ASSIGN_OR_RETURN(
      prepared.function,
      resources.modules.function(resources.plan, step.module, step.entry, step.shared_bytes));
  auto checked =
      check_parameters(resources.device->driver(), prepared.function, parameters_of(step));
  if (!checked) return std::move(checked).error().context("'" + step.entry + "'");
  return prepared;
}

Result<> enqueue_step(const PreparedKernelLaunch& step, const Spaces& spaces, CUstream stream) {
  const plan::KernelLaunch& launch = *step.step;
  std::vector<const void*> addresses;
  for (const plan::Operand& operand : launch.inputs) {
    addresses.push_back(spaces.read(operand.buffer));
  }
  for (const plan::Operand& operand : launch.outputs) {
    addresses.push_back(spaces.write(operand.buffer));
  }
  if (launch.workspace.bytes > 0) addresses.push_back(spaces.write(launch.workspace));
  std::vector<void*> parameters;
  for (const void*& address : addresses) parameters.push_back(static_cast<void*>(&address));

  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = launch.grid[0];
  config.gridDimY = launch.grid[1];
  config.gridDimZ = launch.grid[2];
  config.blockDimX = launch.block[0];
  config.blockDimY = launch.block[1];
  config.blockDimZ = launch.block[2];
  config.sharedMemBytes = launch.shared_bytes;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = step.programmatic ? 1 : 0;
  return step.device->check(
      step.device->driver().launch_kernel_ex(&config, step.function, parameters.data(), nullptr),
      "launch of '" + launch.entry + "'");
}

}  // namespace kiln::cuda
