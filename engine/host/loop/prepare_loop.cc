#include "engine/host/loop/prepare_loop.h"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/host/loop/program.h"
#include "engine/host/loop/worker.h"
#include "engine/host/parallel.h"
#include "formats/loop_ir/analysis.h"
#include "formats/loop_ir/in_place.h"
#include "formats/operation/operation.h"

namespace kiln::host {
namespace {

using loop::ExprId;

// Points times exprs: the scalar operations of one run.
int64_t scalar_operations(const Program& program) {
  const int64_t points = loop::points(program.kernel, ~loop::DimSet{0}).value();
  const auto exprs = static_cast<int64_t>(program.kernel.exprs.size());
  return points > INT64_MAX / 4096 ? INT64_MAX : points * exprs;
}

// Parts into which a run is cut; each has a worker with memory of its own.
int parts_of(const Program& program) {
  for (const loop::Buffer& buffer : program.kernel.buffers) {
    if (buffer.output && bits_of(buffer.dtype) == 4) return 1;  // neighbours share bytes
  }
  const int64_t useful =
      std::min(scalar_operations(program) / kParallelGrain, Worker::task_count(program));
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  return static_cast<int>(std::clamp<int64_t>(useful, 1, std::max<int64_t>(cores, 1)));
}

class LoopInterpreter : public HostKernel {
 public:
  explicit LoopInterpreter(const loop::LoopKernel& kernel)
      : program_(make_program(kernel)), parts_(parts_of(program_)) {}

  uint64_t workspace_bytes() const override {
    return program_.worker_bytes * static_cast<uint64_t>(parts_);
  }

  bool in_place(size_t input) const override {
    return loop::may_overwrite(program_.kernel, static_cast<uint32_t>(input));
  }

  Result<> run(std::span<const void* const> inputs, std::span<void* const> outputs,
               void* workspace) const override {
    std::vector<void*> buffers;
    for (const void* input : inputs) buffers.push_back(const_cast<void*>(input));
    buffers.insert(buffers.end(), outputs.begin(), outputs.end());
    clear_unused_halves(outputs);
    const bool apart = outputs.empty() || std::ranges::find(inputs, outputs[0]) == inputs.end();
    std::vector<std::optional<std::string>> errors(static_cast<size_t>(parts_));
    const int64_t tasks = Worker::task_count(program_);
    const auto first_task = [&](int64_t p) {
      return tasks / parts_ * p + tasks % parts_ * p / parts_;
    };
    parallel_for(parts_, scalar_operations(program_) / parts_, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        std::byte* memory = workspace_of(workspace, part);
        Worker worker(program_, buffers, memory, apart);
        errors[static_cast<size_t>(part)] = worker.run(first_task(part), first_task(part + 1));
      }
    });
    for (const auto& error : errors) {
      if (error) return Error{ErrorCode::kInvalidArgument, *error};
    }
    return Ok();
  }

 private:
  // An odd number of 4-bit elements leaves half a byte, which must not differ from run to run.
  void clear_unused_halves(std::span<void* const> outputs) const {
    const size_t inputs = program_.kernel.buffers.size() - outputs.size();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const loop::Buffer& buffer = program_.kernel.buffers[inputs + o];
      if (bits_of(buffer.dtype) == 4 && buffer.elements % 2 == 1) {
        static_cast<std::byte*>(outputs[o])[buffer.elements / 2] = std::byte{0};
      }
    }
  }

  std::byte* workspace_of(void* workspace, int64_t part) const {
    return static_cast<std::byte*>(workspace) + static_cast<size_t>(part) * program_.worker_bytes;
  }

  Program program_;
  int64_t parts_;
};

Error misfit(const std::string& what) { return {ErrorCode::kInvalidArgument, "loop: " + what}; }

Result<> check_operands(const loop::LoopKernel& kernel, std::span<const TensorType> inputs,
                        std::span<const TensorType> outputs) {
  if (kernel.buffers.size() != inputs.size() + outputs.size()) {
    return misfit("the kernel has " + std::to_string(kernel.buffers.size()) + " buffers, found " +
                  std::to_string(inputs.size() + outputs.size()) + " operands");
  }
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const bool output = b >= inputs.size();
    const TensorType& type = output ? outputs[b - inputs.size()] : inputs[b];
    const loop::Buffer& buffer = kernel.buffers[b];
    if (buffer.output != output || buffer.dtype != type.dtype ||
        checked_element_count(type.shape) != buffer.elements) {
      return misfit("operand " + std::to_string(b) + " is " + to_string(type) +
                    ", the kernel expects " + std::to_string(buffer.elements) + " elements of " +
                    std::string(to_string(buffer.dtype)));
    }
  }
  return Ok();
}

}  // namespace

Result<KernelPtr> prepare_loop_kernel(const loop::LoopKernel& kernel,
                                      std::span<const TensorType> inputs,
                                      std::span<const TensorType> outputs) {
  KILN_RETURN_IF_ERROR(loop::verify(kernel));
  KILN_RETURN_IF_ERROR(check_operands(kernel, inputs, outputs));
  return KernelPtr(std::make_unique<LoopInterpreter>(kernel));
}

Result<KernelPtr> prepare_loop(const Prepare& prepare) {
  const std::string bytes = prepare.operation.get_string("kernel", "");
  KILN_ASSIGN_OR_RETURN(const loop::LoopKernel kernel,
                        loop::decode_loop_kernel(std::as_bytes(std::span(bytes))));
  Types types;
  for (const HostInput& input : prepare.inputs) types.push_back(input.type);
  return prepare_loop_kernel(kernel, types, prepare.outputs);
}

}  // namespace kiln::host
