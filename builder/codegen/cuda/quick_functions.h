// Shorter device code for where less than any f32 can come, or less than an f32 is wanted.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "builder/codegen/cuda/kernel_facts.h"

namespace kiln::codegen {

// The texts of the exprs that have one already.
struct KnownTexts {
  std::function<std::string(loop::ExprId)> value;
  std::function<bool(loop::ExprId)> known;
};

// The text of a kApply or kCast on floats of up to 32 bits, if there is a shorter one than its own.
std::optional<std::string> quick_text(const KernelFacts& facts, loop::ExprId id,
                                      const KnownTexts& texts);

// The same of what a kReduce accumulates with one element more, `sum` being its accumulator.
std::optional<std::string> quick_step_text(const KernelFacts& facts, loop::ExprId reduce,
                                           const std::string& sum, const KnownTexts& texts);

}  // namespace kiln::codegen
