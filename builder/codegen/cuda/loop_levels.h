// What is computed when: the exprs that a kernel's loops need, level by level, and which of them
// are worth keeping from one loop to the next.
#pragma once
#include <vector>

#include "builder/codegen/cuda/kernel_facts.h"

namespace kiln::codegen {

struct LoopLevel {
  std::vector<loop::ExprId> before;  // fixed in the loop, computed ahead of it
  std::vector<loop::ExprId> inside;  // ascending, with the reduces and stores
  std::vector<loop::ExprId> reduces;
};

struct LoopLevels {
  std::vector<LoopLevel> levels;
  std::vector<loop::ExprId> after;  // stores outside of loops
  // With `keep`: loads and values that more than one loop needs, ascending.
  std::vector<loop::ExprId> kept;
};

LoopLevels find_loop_levels(const KernelFacts& facts, loop::DimSet looped, bool keep);

}  // namespace kiln::codegen
