#include "engine/cuda/host_step.h"

#include "engine/cuda/addresses.h"

namespace kiln::cuda {
namespace {

constexpr uint64_t kAlignment = 64;

uint64_t round_up(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <class Call>
uint64_t scratch_of_call(const Call& call) {
  uint64_t bytes = round_up(call.workspace.bytes);
  for (const plan::Operand& operand : call.inputs) bytes += round_up(operand.buffer.bytes);
  for (const plan::Operand& operand : call.outputs) bytes += round_up(operand.buffer.bytes);
  return bytes;
}

Result<> copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes, const HostStepContext& context) {
  if (bytes == 0) return Ok();
  return context.device.check(
      context.device.driver().memcpy_async(to, from, bytes, context.stream),
      "copy of " + std::to_string(bytes) + " bytes between host and device");
}

Result<> wait(const HostStepContext& context) {
  return context.device.check(context.device.driver().stream_synchronize(context.stream),
                              "waiting for the stream");
}

// Copies a call's operands to the host, calls `run(inputs, outputs, workspace)`, copies back.
template <class Call, class Run>
Result<> run_call(const Call& call, const HostStepContext& context, const Run& run) {
  std::byte* next = context.scratch;
  const auto take = [&](uint64_t bytes) {
    std::byte* taken = next;
    next += round_up(bytes);
    return taken;
  };
  std::vector<const void*> inputs;
  for (const plan::Operand& operand : call.inputs) {
    if (operand.buffer.space == plan::BufferRef::Space::kWeights) {
      inputs.push_back(context.weights + operand.buffer.offset);
      continue;
    }
    std::byte* to = take(operand.buffer.bytes);
    inputs.push_back(to);
    KILN_RETURN_IF_ERROR(copy(address_of(to), address_of(context.spaces.read(operand.buffer)),
                              operand.buffer.bytes, context));
  }
  std::vector<void*> outputs;
  for (const plan::Operand& operand : call.outputs) outputs.push_back(take(operand.buffer.bytes));
  std::byte* workspace = take(call.workspace.bytes);
  KILN_RETURN_IF_ERROR(wait(context));
  KILN_RETURN_IF_ERROR(run(inputs, outputs, workspace));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const plan::BufferRef& to = call.outputs[i].buffer;
    KILN_RETURN_IF_ERROR(
        copy(address_of(context.spaces.write(to)), address_of(outputs[i]), to.bytes, context));
  }
  return wait(context);  // the next host step writes to the same scratch
}

}  // namespace

uint64_t scratch_of(const plan::HostOperation& step) { return scratch_of_call(step); }
uint64_t scratch_of(const plan::PluginCall& step) { return scratch_of_call(step); }

Result<> run_host_step(const PreparedHostOperation& step, const HostStepContext& context) {
  return run_call(*step.step, context,
                  [&](std::span<const void* const> inputs, std::span<void* const> outputs,
                      void* workspace) { return step.kernel->run(inputs, outputs, workspace); });
}

Result<> run_host_step(const PreparedPluginCall& step, const HostStepContext& context) {
  return run_call(*step.step, context,
                  [&](std::span<const void* const> inputs, std::span<void* const> outputs,
                      void* workspace) { return step.instance.run(inputs, outputs, workspace); });
}

Result<> read_back(const plan::BufferRef& from, void* to, const HostStepContext& context) {
  KILN_RETURN_IF_ERROR(
      copy(address_of(to), address_of(context.spaces.read(from)), from.bytes, context));
  return wait(context);
}

Result<> write_forward(const void* from, const plan::BufferRef& to,
                       const HostStepContext& context) {
  KILN_RETURN_IF_ERROR(
      copy(address_of(context.spaces.write(to)), address_of(from), to.bytes, context));
  return wait(context);
}

}  // namespace kiln::cuda
