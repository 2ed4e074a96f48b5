// Shorter device functions for where less than any f32 can come, or less than an f32 is wanted.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "builder/codegen/cuda/kernel_facts.h"

namespace kiln::codegen {

// The text of a kApply on floats of up to 32 bits, if there is a shorter function than its own;
// `value` gives the texts of exprs, `known` tells which have one.
std::optional<std::string> quick_text(const KernelFacts& facts, loop::ExprId id,
                                      const std::function<std::string(loop::ExprId)>& value,
                                      const std::function<bool(loop::ExprId)>& known);

}  // namespace kiln::codegen
