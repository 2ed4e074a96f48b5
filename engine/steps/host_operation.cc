#include "engine/steps/host_operation.h"

#include "engine/steps/call_rules.h"
#include "formats/operation/operation.h"

namespace kiln {

Result<PreparedHostOperation> prepare_step(const plan::HostOperation& step,
                                           const StepResources& resources) {
  if (resources.host_kernels.prepare == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "needs host kernels; link kiln_host and set LoadOptions::host_kernels"};
  }
  KILN_ASSIGN_OR_RETURN(const Operation operation,
                        decode_operation(resources.plan.blobs[step.operation].bytes));
  const Spaces spaces{.weights = resources.plan.weights.data()};
  std::vector<HostInput> inputs;
  for (const plan::Operand& operand : step.inputs) {
    const bool constant = operand.buffer.space == plan::BufferRef::Space::kWeights;
    inputs.push_back({operand.type, constant ? spaces.read(operand.buffer) : nullptr});
  }
  PreparedHostOperation prepared{.step = &step, .kernel = nullptr};
  KILN_ASSIGN_OR_RETURN(prepared.kernel,
                        resources.host_kernels.prepare(operation, inputs, types_of(step.outputs)));
  KILN_RETURN_IF_ERROR(check_workspace(step.workspace, prepared.kernel->workspace_bytes()));
  KILN_RETURN_IF_ERROR(check_overlaps(step.inputs, step.outputs, step.workspace,
                                      [&](size_t i) { return prepared.kernel->in_place(i); }));
  return prepared;
}

Result<> run_step(const PreparedHostOperation& step, const Spaces& spaces,
                  CallAddresses& addresses) {
  addresses.resolve(spaces, step.step->inputs, step.step->outputs);
  return step.kernel->run(addresses.inputs, addresses.outputs, spaces.write(step.step->workspace));
}

}  // namespace kiln
