#include "engine/host/loop/prepare_loop.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <string>
#include <vector>

#include "engine/host/loop/program.h"
#include "engine/host/loop/worker.h"
#include "formats/loop_ir/analysis.h"

namespace kiln::host {
namespace {

using loop::Expr;
using loop::ExprId;

// Fewer points than this are done before another thread has woken up.
constexpr int64_t kPointsPerThread = 1 << 15;

int thread_limit() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

int threads_for(const Program& program) {
  for (const loop::Buffer& buffer : program.kernel.buffers) {
    if (buffer.output && bits_of(buffer.dtype) == 4) return 1;  // neighbours share bytes
  }
  const int64_t points = loop::points(program.kernel, ~loop::DimSet{0}).value();
  const int64_t useful = std::min(points / kPointsPerThread, Worker::task_count(program));
  return static_cast<int>(std::clamp<int64_t>(useful, 1, thread_limit()));
}

// Output 0 may lie in an input's memory if each element is read where it is written, in the same
// block, and is not itself the value of another store that might come later.
bool may_overwrite(const loop::LoopKernel& kernel, uint32_t input) {
  const auto first_output = std::ranges::find_if(kernel.buffers, &loop::Buffer::output);
  if (first_output == kernel.buffers.end() || input >= kernel.buffers.size()) return false;
  const loop::Buffer& from = kernel.buffers[input];
  if (from.output || bits_of(from.dtype) != bits_of(first_output->dtype)) return false;
  if (from.elements != first_output->elements || bits_of(from.dtype) < 8) return false;
  const auto output = static_cast<uint32_t>(first_output - kernel.buffers.begin());
  const auto is_store = [&](const Expr& e) {
    return e.kind == Expr::Kind::kStore && e.buffer == output;
  };
  const Expr& store = *std::ranges::find_if(kernel.exprs, is_store);
  for (ExprId id = 0; id < kernel.exprs.size(); ++id) {
    const Expr& load = kernel.exprs[id];
    if (load.kind != Expr::Kind::kLoad || load.buffer != input) continue;
    if (load.map != store.map || !load.bounds.empty()) return false;
    for (const Expr& e : kernel.exprs) {
      if (e.kind == Expr::Kind::kStore && e.args[0] == id && !is_store(e)) return false;
    }
  }
  return true;
}

class LoopInterpreter : public HostKernel {
 public:
  explicit LoopInterpreter(const loop::LoopKernel& kernel)
      : program_(make_program(kernel)), threads_(threads_for(program_)) {}

  uint64_t workspace_bytes() const override {
    return program_.worker_bytes * static_cast<uint64_t>(threads_);
  }

  bool in_place(size_t input) const override {
    return may_overwrite(program_.kernel, static_cast<uint32_t>(input));
  }

  Result<> run(std::span<const void* const> inputs, std::span<void* const> outputs,
               void* workspace) const override {
    std::vector<void*> buffers;
    for (const void* input : inputs) buffers.push_back(const_cast<void*>(input));
    buffers.insert(buffers.end(), outputs.begin(), outputs.end());
    const bool apart = outputs.empty() || std::ranges::find(inputs, outputs[0]) == inputs.end();
    auto* memory = static_cast<std::byte*>(workspace);
    std::vector<std::optional<std::string>> errors(static_cast<size_t>(threads_));
    const int64_t tasks = Worker::task_count(program_);
    const auto work = [&](int thread) {
      Worker worker(program_, buffers, memory + static_cast<size_t>(thread) * program_.worker_bytes,
                    apart);
      const auto at = [&](int64_t t) { return tasks / threads_ * t + tasks % threads_ * t / threads_; };
      errors[static_cast<size_t>(thread)] = worker.run(at(thread), at(thread + 1));
    };
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(threads_) if (threads_ > 1)
#endif
    for (int thread = 0; thread < threads_; ++thread) work(thread);
    for (const auto& error : errors) {
      if (error) return Error{ErrorCode::kInvalidArgument, *error};
    }
    return Ok();
  }

 private:
  Program program_;
  int threads_;
};

Error misfit(const std::string& what) {
  return {ErrorCode::kInvalidArgument, "loop: " + what};
}

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

Result<std::unique_ptr<HostKernel>> prepare_loop_kernel(const loop::LoopKernel& kernel,
                                                        std::span<const TensorType> inputs,
                                                        std::span<const TensorType> outputs) {
  KILN_RETURN_IF_ERROR(loop::verify(kernel));
  KILN_RETURN_IF_ERROR(check_operands(kernel, inputs, outputs));
  return std::unique_ptr<HostKernel>(std::make_unique<LoopInterpreter>(kernel));
}

Result<std::unique_ptr<HostKernel>> prepare_loop(const Operation& operation,
                                                 std::span<const HostInput> inputs,
                                                 std::span<const TensorType> outputs) {
  const std::string bytes = operation.get_string("kernel", "");
  KILN_ASSIGN_OR_RETURN(const loop::LoopKernel kernel,
                        loop::decode_loop_kernel(std::as_bytes(std::span(bytes))));
  std::vector<TensorType> types;
  for (const HostInput& input : inputs) types.push_back(input.type);
  return prepare_loop_kernel(kernel, types, outputs);
}

}  // namespace kiln::host
