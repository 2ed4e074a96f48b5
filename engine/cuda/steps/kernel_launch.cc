#include "engine/cuda/steps/kernel_launch.h"

#include <string>

#include "engine/cuda/captured_node.h"

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

// The addresses that a launch takes, as the driver wants them.
class Parameters {
 public:
  Parameters(const plan::KernelLaunch& launch, const Spaces& spaces) {
    for (const plan::Operand& operand : launch.inputs) {
      addresses_.push_back(spaces.read(operand.buffer));
    }
    for (const plan::Operand& operand : launch.outputs) {
      addresses_.push_back(spaces.write(operand.buffer));
    }
    if (launch.workspace.bytes > 0) addresses_.push_back(spaces.write(launch.workspace));
    for (const void*& address : addresses_) pointers_.push_back(static_cast<void*>(&address));
  }
  void** get() { return pointers_.data(); }

 private:
  std::vector<const void*> addresses_;
  std::vector<void*> pointers_;
};

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
  Parameters parameters(launch, spaces);
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  // Libraries end some of their calls with copies, which a kernel cannot overlap.
  const bool overlaps =
      step.programmatic && is_kernel(*step.device, latest_node(*step.device, stream));
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
  config.numAttrs = overlaps ? 1 : 0;
  return step.device->check(
      step.device->driver().launch_kernel_ex(&config, step.function, parameters.get(), nullptr),
      "launch of '" + launch.entry + "'");
}

Result<> rebind(const PreparedKernelLaunch& step, const Spaces& spaces, CUgraphExec graph,
                CUgraphNode node) {
  const plan::KernelLaunch& launch = *step.step;
  Parameters parameters(launch, spaces);
  CUDA_KERNEL_NODE_PARAMS node_parameters = {};
  node_parameters.func = step.function;
  node_parameters.gridDimX = launch.grid[0];
  node_parameters.gridDimY = launch.grid[1];
  node_parameters.gridDimZ = launch.grid[2];
  node_parameters.blockDimX = launch.block[0];
  node_parameters.blockDimY = launch.block[1];
  node_parameters.blockDimZ = launch.block[2];
  node_parameters.sharedMemBytes = launch.shared_bytes;
  node_parameters.kernelParams = parameters.get();
  return step.device->check(
      step.device->driver().graph_exec_set_kernel(graph, node, &node_parameters),
      "cuGraphExecKernelNodeSetParams of '" + launch.entry + "'");
}

}  // namespace kiln::cuda
