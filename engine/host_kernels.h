// The host target's kernels (library kiln_host). An application that runs host engines links it and
// passes host_kernels() to Engine::load; the lean runtime does not contain it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln {

struct Operation;  // formats/operation/operation.h

struct HostInput {
  TensorType type;
  const void* constant = nullptr;  // the bytes, where they are known and outlive the kernel
};

// One operation with fixed types, made ready to run. Immutable: run() may be called by many threads
// at once, each with its own buffers and workspace.
class HostKernel {
 public:
  virtual ~HostKernel() = default;
  // Bytes of workspace that run() needs, 64-byte aligned.
  virtual uint64_t workspace_bytes() const { return 0; }
  // Buffers are dense and aligned to their element; outputs overlap no input, except where
  // in_place(i) says that output 0 may be input i's buffer.
  virtual Result<> run(std::span<const void* const> inputs, std::span<void* const> outputs,
                       void* workspace) const = 0;
  virtual bool in_place(size_t input) const {
    (void)input;
    return false;
  }
};

// What Engine::load needs to run host steps. Plain functions, so that a test can inject its own.
struct HostKernels {
  // kUnsupported if no kernel has that name or takes those types; kInvalidArgument if attributes
  // and types contradict each other. Untrusted input: any operation must yield a kernel or an
  // error.
  Result<std::unique_ptr<HostKernel>> (*prepare)(const Operation& operation,
                                                 std::span<const HostInput> inputs,
                                                 std::span<const TensorType> outputs) = nullptr;
};

// Plain kernels for every operation ("matmul", "conv", "resize", ...), the loop interpreter
// ("loop", attribute "kernel" = an encoded LoopKernel), and oneDNN's ("onednn.matmul",
// "onednn.conv"). engine/host/OPERATIONS.md lists them all.
HostKernels host_kernels();

// Types of an operation's outputs, or what is wrong with its attributes and inputs: found and
// expected.
Result<std::vector<TensorType>> infer_host_operation(const Operation& operation,
                                                     std::span<const TensorType> inputs);

// Runs one operation once: what constant folding and the reference do.
Result<> run_host_operation(const Operation& operation, std::span<const TensorType> input_types,
                            std::span<const void* const> inputs,
                            std::span<const TensorType> output_types,
                            std::span<void* const> outputs);

}  // namespace kiln
