// The parts of make_program(), in order. Each adds to the program what the next ones read.
#pragma once
#include <optional>
#include <vector>

#include "engine/host/loop/program.h"
#include "formats/loop_ir/analysis.h"

namespace kiln::host {

// The kernel's exprs and what they depend on.
struct Dependences {
  explicit Dependences(const loop::LoopKernel& kernel);

  size_t size() const { return kernel.exprs.size(); }
  const loop::Expr& expr(loop::ExprId id) const { return kernel.exprs[id]; }
  bool in_loop(loop::ExprId id) const { return (varying[id] & reduced) != 0; }
  // The exprs that must have lanes for this one to be computed.
  std::vector<loop::ExprId> operands(loop::ExprId id) const;
  // Comparing an index with a constant needs no lanes of indices: the bound that holds where the
  // comparison does.
  std::optional<loop::Bound> range_test(loop::ExprId id) const;

  const loop::LoopKernel& kernel;
  loop::DimSet reduced;               // dims
  std::vector<loop::DimSet> varying;  // dims that an expr's value depends on
  std::vector<uint32_t> level;        // reductions, one after the other, that an expr waits for
};

// Which dims become lanes, and how many lanes are a block.
void choose_lanes(Program& program, loop::DimSet reduced);
// What is computed when: `once`, `levels`, `last`.
void schedule(Program& program, const Dependences& on);
// Where the lanes and accumulators of each instruction lie.
void allocate(Program& program, const Dependences& on);

}  // namespace kiln::host
