// What holds for every step that calls code of another library.
#pragma once
#include <functional>
#include <vector>

#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln {

std::vector<TensorType> types_of(const std::vector<plan::Operand>& operands);

// Kernels may assume that outputs overlap neither each other nor the workspace nor an input, except
// that output 0 may be the whole of an input i for which in_place(i) holds. A file may claim
// anything, so it is checked before the first run.
Result<> check_overlaps(const std::vector<plan::Operand>& inputs,
                        const std::vector<plan::Operand>& outputs, const plan::BufferRef& workspace,
                        const std::function<bool(size_t)>& in_place);

// The step's workspace is as large as the call needs.
Result<> check_workspace(const plan::BufferRef& workspace, uint64_t needed_bytes);

}  // namespace kiln
