#include "engine/context/host_context.h"

#include <algorithm>
#include <cstring>

#include "engine/context/memory.h"
#include "engine/context/write_check.h"
#include "engine/request/bind_request.h"
#include "engine/steps/program.h"

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

Error no_device_clock() { return {ErrorCode::kUnsupported, "target host has no device clock"}; }

class HostContext : public Context {
 public:
  HostContext(const std::vector<Program>& programs, Memory memory)
      : programs_(programs), memory_(std::move(memory)) {}

  Result<> run(const LoadedEngine& engine, std::span<const Tensor> inputs,
               std::span<const Tensor> outputs, Stream stream) override {
    KILN_ASSIGN_OR_RETURN(Request request, bind_request(engine, inputs, outputs));
    const Choice& choice = request.choice;
    const int64_t batch = engine.plan.points[choice.point].batch;
    const StagingLayout& staging = engine.staging[choice.point];
    const std::vector<void*> callers_outputs = request.outputs;
    if (choice.padded) stage_request(request, staging, memory_.data(), batch);

    const Spaces spaces{memory_.data(), engine.plan.weights.data(), request.inputs,
                        request.outputs};
    KILN_RETURN_IF_ERROR(run_program(programs_[choice.point], spaces, addresses_, stream));

    if (!choice.padded) return Ok();
    for (size_t i = 0; i < callers_outputs.size(); ++i) {
      if (!staging.outputs[i].staged) continue;
      trim_rows(request.outputs[i], batch, callers_outputs[i], choice.rows,
                staging.outputs[i].rows);
    }
    return Ok();
  }

  Result<double> time_on_device(size_t, int) override { return no_device_clock(); }
  Result<RequestTimes> time_request(const LoadedEngine&, std::span<const Tensor>,
                                    std::span<const Tensor>) override {
    return no_device_clock();
  }
  Result<double> time_with_cold_weights(size_t, int, int) override { return no_device_clock(); }

  // Staged tensors lie behind the arena; callers' tensors are the caller's to look after.
  Result<> run_checked(const LoadedEngine& engine, std::span<const Tensor> inputs,
                       std::span<const Tensor> outputs) override {
    KILN_ASSIGN_OR_RETURN(const Request request, bind_request(engine, inputs, outputs));
    const plan::ShapePoint& point = engine.plan.points[request.choice.point];
    std::fill_n(memory_.data(), point.arena_bytes, kPoison);
    KILN_RETURN_IF_ERROR(run(engine, inputs, outputs, {}));
    return check_writes(arena_writes(point), point.arena_bytes,
                        [&](uint64_t offset, std::span<std::byte> to) -> Result<> {
                          std::copy_n(memory_.data() + offset, to.size(), to.begin());
                          return Ok();
                        });
  }

 private:
  const std::vector<Program>& programs_;
  Memory memory_;
  CallAddresses addresses_;
};

class HostEngine : public TargetEngine {
 public:
  std::vector<Program> programs;  // by shape point
  uint64_t bytes = 0;             // arena and staging of the largest shape point

  Result<std::unique_ptr<Context>> create_context(const LoadedEngine&) const override {
    KILN_ASSIGN_OR_RETURN(Memory memory, Memory::allocate(bytes));
    return std::unique_ptr<Context>(new HostContext(programs, std::move(memory)));
  }
  uint64_t context_bytes() const override { return bytes; }
  uint64_t shared_bytes() const override { return 0; }
  std::string device_address() const override { return ""; }

  Result<std::shared_ptr<std::byte>> allocate(MemoryKind memory, uint64_t size) const override {
    if (memory == MemoryKind::kDevice) {
      return Error{ErrorCode::kUnsupported, "an engine of target host has no device memory"};
    }
    KILN_ASSIGN_OR_RETURN(Memory block, Memory::allocate(size));
    const auto owner = std::make_shared<Memory>(std::move(block));
    return std::shared_ptr<std::byte>(owner, owner->data());
  }
  Result<> copy(void* to, const void* from, uint64_t size) const override {
    if (size > 0) std::memcpy(to, from, size);
    return Ok();
  }
};

}  // namespace

Result<std::unique_ptr<const TargetEngine>> load_host_engine(const LoadedEngine& engine,
                                                             const StepResources& resources) {
  auto host = std::make_unique<HostEngine>();
  for (size_t i = 0; i < engine.plan.points.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(Program program, prepare_program(engine.plan.points[i], resources));
    host->programs.push_back(std::move(program));
    host->bytes = std::max(host->bytes, engine.staging[i].end);
  }
  return std::unique_ptr<const TargetEngine>(std::move(host));
}

}  // namespace kiln
