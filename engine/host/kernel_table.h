// The explicit table of the host's operations.
#pragma once
#include <span>
#include <string_view>

#include "engine/host/kernel.h"
#include "engine/host/widen.h"

namespace kiln::host {

struct KernelRow {
  std::string_view name;
  InferFn infer;  // null: prepare checks the types itself
  PrepareFn prepare;
  Storage storage;
};

// Scalar functions have no row each: every one of their names is the pointwise row.
const KernelRow* find_kernel(std::string_view name);

}  // namespace kiln::host
