#include "builder/tactics/finish_lowering.h"

#include "builder/tactics/cuda/lower_device.h"
#include "engine/host_kernels.h"

namespace kiln {
namespace {

const void* constant_of(const TacticQuery& query, const Lowered& lowered, LocalBuffer buffer) {
  if (buffer.kind == LocalBuffer::Kind::kConstant) {
    return lowered.constants[buffer.index].bytes.data();
  }
  if (buffer.kind == LocalBuffer::Kind::kInput && query.constants[buffer.index]) {
    return query.constants[buffer.index]->data();
  }
  return nullptr;
}

std::vector<TensorType> types_of(const TacticQuery& query, const Lowered& lowered,
                                 std::span<const LocalBuffer> buffers) {
  std::vector<TensorType> types;
  for (LocalBuffer buffer : buffers) types.push_back(type_of(query, lowered, buffer));
  return types;
}

// Whether output 0 of a one-step lowering may take over the buffer of an input: it must be read by
// one operand only.
void find_in_place(const HostCall& call, const HostKernel& kernel, Lowered& lowered) {
  if (lowered.steps.size() != 1 || call.outputs.size() != 1) return;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].kind != LocalBuffer::Kind::kInput || !kernel.in_place(i)) continue;
    size_t readers = 0;
    for (LocalBuffer other : call.inputs) readers += other == call.inputs[i];
    if (readers == 1) lowered.in_place_inputs.push_back(call.inputs[i].index);
  }
}

Result<> finish(const TacticQuery& query, Lowered& lowered, HostCall& call) {
  std::vector<HostInput> inputs;
  for (LocalBuffer buffer : call.inputs) {
    inputs.push_back({type_of(query, lowered, buffer), constant_of(query, lowered, buffer)});
  }
  const auto outputs = types_of(query, lowered, call.outputs);
  KILN_ASSIGN_OR_RETURN(const auto kernel, host_kernels().prepare(call.operation, inputs, outputs));
  call.workspace_bytes = kernel->workspace_bytes();
  find_in_place(call, *kernel, lowered);
  return Ok();
}

Result<> finish(const TacticQuery& query, Lowered& lowered, HostPluginCall& call) {
  const Plugin* plugin = find_plugin(query.plugins, call.name, call.version);
  if (!plugin) return Error{ErrorCode::kInternal, "plugin '" + call.name + "' is not loaded"};
  KILN_ASSIGN_OR_RETURN(const auto instance,
                        plugin->instantiate(call.attributes, types_of(query, lowered, call.inputs),
                                            types_of(query, lowered, call.outputs)));
  call.workspace_bytes = instance.workspace_bytes();
  return Ok();
}

}  // namespace

const TensorType& type_of(const TacticQuery& query, const Lowered& lowered, LocalBuffer buffer) {
  switch (buffer.kind) {
    case LocalBuffer::Kind::kInput:
      return query.inputs[buffer.index];
    case LocalBuffer::Kind::kOutput:
      return query.outputs[buffer.index];
    case LocalBuffer::Kind::kConstant:
      return lowered.constants[buffer.index].type;
    default:
      return lowered.temporaries[buffer.index];
  }
}

Result<> finish_lowering(const TacticQuery& query, Lowered& lowered) {
  lowered.in_place_inputs.clear();
  if (query.cuda != nullptr) KILN_RETURN_IF_ERROR(lower_device(query, lowered));
  for (LocalStep& step : lowered.steps) {
    if (auto* call = std::get_if<HostCall>(&step)) {
      KILN_RETURN_IF_ERROR(finish(query, lowered, *call));
    } else if (auto* plugin = std::get_if<HostPluginCall>(&step)) {
      KILN_RETURN_IF_ERROR(finish(query, lowered, *plugin));
    }
  }
  return Ok();
}

}  // namespace kiln
