// Steps of a CUDA engine that run on the host: their operands are copied there and back.
#pragma once
#include "engine/cuda/owned.h"
#include "engine/steps/host_operation.h"
#include "engine/steps/plugin_call.h"

namespace kiln::cuda {

// Bytes of host memory that the step's operands and workspace take.
uint64_t scratch_of(const plan::HostOperation& step);
uint64_t scratch_of(const plan::PluginCall& step);

// What a host step runs with.
struct HostStepContext {
  const Device& device;
  CUstream stream = nullptr;
  const Spaces& spaces;                // device addresses
  const std::byte* weights = nullptr;  // the host's copy
  std::byte* scratch = nullptr;        // aligned to 64 bytes
};

// Waits for the stream, runs the step, and puts the outputs' copies into the stream.
Result<> run_host_step(const PreparedHostOperation& step, const HostStepContext& context);
Result<> run_host_step(const PreparedPluginCall& step, const HostStepContext& context);

// One element that control flow looks at; waits for the stream.
Result<> read_back(const plan::BufferRef& from, void* to, const HostStepContext& context);
// `from` may be reused when this returns.
Result<> write_forward(const void* from, const plan::BufferRef& to, const HostStepContext& context);

}  // namespace kiln::cuda
