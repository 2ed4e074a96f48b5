#include "engine/cuda/steps/kernel_launch.h"

namespace kiln::cuda {

Result<PreparedKernelLaunch> prepare_step(const plan::KernelLaunch& step,
                                          const DeviceResources& resources) {
  PreparedKernelLaunch prepared{&step, resources.device, nullptr};
  KILN_ASSIGN_OR_RETURN(
      prepared.function,
      resources.modules.function(resources.plan, step.module, step.entry, step.shared_bytes));
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
  for (const void*& address : addresses) parameters.push_back(&address);

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
  config.numAttrs = launch.programmatic ? 1 : 0;
  return step.device->check(
      step.device->driver().launch_kernel_ex(&config, step.function, parameters.data(), nullptr),
      "launch of '" + launch.entry + "'");
}

}  // namespace kiln::cuda
