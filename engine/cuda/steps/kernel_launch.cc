#include "engine/cuda/steps/kernel_launch.h"

#include <string>

#include "engine/cuda/captured_node.h"
#include "engine/cuda/steps/launch_parameters.h"

namespace kiln::cuda {

Result<PreparedKernelLaunch> prepare_step(const plan::KernelLaunch& step,
                                          const DeviceResources& resources) {
  PreparedKernelLaunch prepared{&step, resources.device, nullptr,
                                step.programmatic && resources.programmatic_launch};
  KILN_ASSIGN_OR_RETURN(
      prepared.function,
      resources.modules.function(resources.plan, step.module, step.entry, step.shared_bytes));
  auto checked = check_parameters(resources.device->driver(), prepared.function, step);
  if (!checked) return std::move(checked).error().context("'" + step.entry + "'");
  return prepared;
}

Result<> enqueue_step(const PreparedKernelLaunch& step, const Spaces& spaces, CUstream stream) {
  const plan::KernelLaunch& launch = *step.step;
  KILN_ASSIGN_OR_RETURN(auto parameters, LaunchParameters::make(*step.device, launch, spaces));
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
  KILN_ASSIGN_OR_RETURN(auto parameters, LaunchParameters::make(*step.device, launch, spaces));
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
