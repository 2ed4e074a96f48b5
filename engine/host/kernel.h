// How the host's kernels are written: a row of the table in kernel_table.cc names an operation, an
// infer function says which types it yields (or what is wrong with it), and a prepare function
// turns it into a kernel, usually a lambda over a small plan.
#pragma once
#include <concepts>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/host_kernels.h"

namespace kiln::host {

using Types = std::vector<TensorType>;
using Inputs = std::span<const void* const>;
using Outputs = std::span<void* const>;
using KernelPtr = std::unique_ptr<HostKernel>;

// What a prepare function is given. `outputs` are what infer yields for `inputs`, so attributes
// and types fit together and nothing needs to be checked again.
struct Prepare {
  const Operation& operation;
  std::span<const HostInput> inputs;
  std::span<const TensorType> outputs;
};

// prepared with must be checked by its kernel.
using InferFn = Result<Types> (*)(const Operation&, std::span<const TensorType> inputs);
using PrepareFn = Result<KernelPtr> (*)(const Prepare&);

// A kernel from a callable: run(inputs, outputs) or run(inputs, outputs, workspace), yielding void
// or Result<>.
template <class Run>
class FunctionKernel final : public HostKernel {
 public:
  FunctionKernel(Run run, uint64_t workspace_bytes, bool in_place)
      : run_(std::move(run)), workspace_bytes_(workspace_bytes), in_place_(in_place) {}

  uint64_t workspace_bytes() const override { return workspace_bytes_; }
  bool in_place(size_t input) const override { return in_place_ && input == 0; }

  Result<> run(Inputs inputs, Outputs outputs, void* workspace) const override try {
    if constexpr (std::invocable<const Run&, Inputs, Outputs, void*>) {
      return finish([&] { return run_(inputs, outputs, workspace); });
    } else {
      return finish([&] { return run_(inputs, outputs); });
    }
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "a host kernel ran out of memory"};
  }

 private:
  template <class Call>
  static Result<> finish(Call call) {
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      return Ok();
    } else {
      return call();
    }
  }

  Run run_;
  uint64_t workspace_bytes_;
  bool in_place_;
};

// in_place: output 0 may be input 0's buffer.
template <class Run>
KernelPtr make_kernel(Run run, uint64_t workspace_bytes = 0, bool in_place = false) {
  return std::make_unique<FunctionKernel<Run>>(std::move(run), workspace_bytes, in_place);
}

template <class T>
const T* input(Inputs inputs, size_t i) {
  return static_cast<const T*>(inputs[i]);
}
template <class T>
T* output(Outputs outputs, size_t i) {
  return static_cast<T*>(outputs[i]);
}

}  // namespace kiln::host
