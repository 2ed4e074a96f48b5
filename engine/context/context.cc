#include "engine/context/context.h"

#include "engine/request/bind_request.h"

namespace kiln {
namespace {

// Replaces the addresses of tensors that grow with the batch by staged, padded copies.
void stage_request(Request& request, const StagingLayout& staging, std::byte* memory,
                   int64_t batch) {
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const StagedTensor& tensor = staging.inputs[i];
    if (!tensor.staged) continue;
    std::byte* staged = memory + tensor.offset;
    pad_rows(request.inputs[i], request.choice.rows, staged, batch, tensor.rows);
    request.inputs[i] = staged;
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    if (staging.outputs[i].staged) request.outputs[i] = memory + staging.outputs[i].offset;
  }
}

}  // namespace

Result<Context> Context::create(const LoadedEngine& engine) {
  Context context;
  KILN_ASSIGN_OR_RETURN(context.memory_, Memory::allocate(engine.context_bytes));
  return context;
}

Result<> Context::run(const LoadedEngine& engine, std::span<const Tensor> inputs,
                      std::span<const Tensor> outputs, Stream stream) {
  KILN_ASSIGN_OR_RETURN(Request request, bind_request(engine, inputs, outputs));
  const Choice& choice = request.choice;
  const int64_t batch = engine.plan.points[choice.point].batch;
  const StagingLayout& staging = engine.staging[choice.point];
  const std::vector<void*> callers_outputs = request.outputs;
  if (choice.padded) stage_request(request, staging, memory_.data(), batch);

  const Spaces spaces{memory_.data(), engine.plan.weights.data(), request.inputs, request.outputs};
  KILN_RETURN_IF_ERROR(run_program(engine.programs[choice.point], spaces, addresses_, stream));

  if (!choice.padded) return Ok();
  for (size_t i = 0; i < callers_outputs.size(); ++i) {
    if (!staging.outputs[i].staged) continue;
    trim_rows(request.outputs[i], batch, callers_outputs[i], choice.rows, staging.outputs[i].rows);
  }
  return Ok();
}

}  // namespace kiln
