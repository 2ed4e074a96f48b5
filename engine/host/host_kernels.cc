#include "engine/host_kernels.h"

#include <new>
#include <stdexcept>

#include "engine/host/attributes.h"
#include "engine/host/kernel_table.h"

namespace kiln {
namespace {

using host::KernelPtr;
using host::KernelRow;
using host::Types;

// The largest rank and tensor that a kernel is asked to handle: sizes in bytes stay far from
// overflow, and a hostile file cannot make a kernel walk thousands of axes.
constexpr int64_t kMaxRank = 32;
constexpr int64_t kMaxElements = int64_t{1} << 56;

Result<> check_type(const Operation& operation, const TensorType& type) {
  const auto count = checked_element_count(type.shape);
  if (type.rank() > kMaxRank || !count || *count > kMaxElements) {
    return host::reject(operation, "a tensor of rank " + std::to_string(type.rank()) +
                                       " and shape " + to_string(type.shape) + " is too large");
  }
  return Ok();
}

Result<const KernelRow*> row_of(const Operation& operation) {
  const KernelRow* row = host::find_kernel(operation.name);
  if (row) return row;
  return Error{ErrorCode::kUnsupported, "the host has no operation '" + operation.name + "'"};
}

Result<> check_outputs(const Operation& operation, const Types& inferred,
                       std::span<const TensorType> given) {
  if (inferred.size() != given.size()) {
    return host::reject(operation, "found " + std::to_string(given.size()) + " outputs, expected " +
                                       std::to_string(inferred.size()));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (inferred[i] == given[i]) continue;
    return host::reject(operation, "output " + std::to_string(i) + " is " + to_string(given[i]) +
                                       ", expected " + to_string(inferred[i]));
  }
  return Ok();
}

Result<KernelPtr> prepare_checked(const Operation& operation, std::span<const HostInput> inputs,
                                  std::span<const TensorType> outputs) {
  KILN_ASSIGN_OR_RETURN(const KernelRow* row, row_of(operation));
  Types types;
  for (const HostInput& input : inputs) {
    KILN_RETURN_IF_ERROR(check_type(operation, input.type));
    types.push_back(input.type);
  }
  for (const TensorType& type : outputs) KILN_RETURN_IF_ERROR(check_type(operation, type));
  if (row->infer) {
    KILN_ASSIGN_OR_RETURN(const Types inferred, row->infer(operation, types));
    KILN_RETURN_IF_ERROR(check_outputs(operation, inferred, outputs));
  }
  return host::prepare_stored({operation, inputs, outputs}, row->prepare, row->storage);
}

Result<KernelPtr> prepare(const Operation& operation, std::span<const HostInput> inputs,
                          std::span<const TensorType> outputs) try {
  return prepare_checked(operation, inputs, outputs);
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::kOutOfMemory, operation.name + ": out of memory while preparing"};
} catch (const std::length_error&) {
  return Error{ErrorCode::kOutOfMemory, operation.name + ": out of memory while preparing"};
}

}  // namespace

HostKernels host_kernels() { return {prepare}; }

Result<std::vector<TensorType>> infer_host_operation(const Operation& operation,
                                                     std::span<const TensorType> inputs) {
  KILN_ASSIGN_OR_RETURN(const KernelRow* row, row_of(operation));
  if (!row->infer) return host::unsupported(operation, "its types cannot be inferred");
  for (const TensorType& type : inputs) KILN_RETURN_IF_ERROR(check_type(operation, type));
  return row->infer(operation, inputs);
}

Result<> run_host_operation(const Operation& operation, std::span<const TensorType> input_types,
                            std::span<const void* const> inputs,
                            std::span<const TensorType> output_types,
                            std::span<void* const> outputs) {
  std::vector<HostInput> in;
  for (size_t i = 0; i < input_types.size(); ++i) in.push_back({input_types[i], inputs[i]});
  KILN_ASSIGN_OR_RETURN(const KernelPtr kernel, prepare(operation, in, output_types));
  // new aligns to 16 bytes only; kernels may ask for 64.
  constexpr uint64_t kAlignment = 64;
  std::vector<std::byte> workspace(kernel->workspace_bytes() + kAlignment);
  void* base = workspace.data();
  size_t space = workspace.size();
  std::align(kAlignment, kernel->workspace_bytes(), base, space);
  return kernel->run(inputs, outputs, base);
}

}  // namespace kiln
