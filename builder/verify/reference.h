// The reference: runs a graph one node at a time with the host's plain kernels. It is the oracle of
// verification and the evaluator of constant folding, so folding equals running.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "builder/ir/graph.h"
#include "engine/plugin_library.h"
#include "formats/operation/operation.h"
#include "formats/result.h"
#include "formats/shared_bytes.h"
#include "formats/tensor_type.h"

namespace kiln {

// A dense tensor that owns its bytes.
struct HostTensor {
  TensorType type;
  SharedBytes bytes;
};

// Runs one operation elsewhere than on the host, faster; false where it does not.
using ReferenceAccelerator = std::function<Result<bool>(
    const Operation& operation, std::span<const TensorType> input_types,
    std::span<const void* const> inputs, std::span<const TensorType> output_types,
    std::span<void* const> outputs)>;

struct ReferenceOptions {
  // Fails with kOutOfMemory instead of allocating a value larger than this.
  int64_t max_value_bytes = int64_t{1} << 36;
  std::span<const Plugin> plugins = {};   // for PluginCall nodes
  ReferenceAccelerator accelerator = {};  // for what is large; all on the host without
};

// Executes every node, If, Loop, PluginCall and Region included. Inputs are in the order of
// graph.inputs(), with exactly those types. Errors name the node. Thread-safe.
Result<std::vector<HostTensor>> run_reference(const ir::Graph& graph,
                                              std::span<const HostTensor> inputs,
                                              const ReferenceOptions& options = {});

// One operation. `output_types` are what infer_types says, or the node's for ops that are given
// their types (PluginCall).
Result<std::vector<HostTensor>> run_reference_op(const ir::Op& op,
                                                 std::span<const HostTensor> inputs,
                                                 std::span<const TensorType> output_types,
                                                 const ReferenceOptions& options = {});

// The tensor as the Cast operation converts it; itself where it has the dtype.
Result<HostTensor> convert_tensor(const HostTensor& tensor, DType dtype);

}  // namespace kiln
