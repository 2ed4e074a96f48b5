// The table of opaque operations: the long tail that no pass looks into.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "formats/operation/operation.h"
#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln::ir {

// One row an operation. Adding one: a row in opaque_ops.cc, a kernel in engine/host/ (listed in
// OPERATIONS.md) and an import handler.
struct OpaqueOp {
  std::string_view name;
  // Output types, or what is wrong with attributes and inputs: found and expected.
  Result<std::vector<TensorType>> (*infer)(const Operation&, std::span<const TensorType> inputs);
};

// Null for a name that has no row.
const OpaqueOp* find_opaque_op(std::string_view name);
std::span<const OpaqueOp> opaque_ops();

}  // namespace kiln::ir
