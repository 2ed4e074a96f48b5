// What every family of schedules wants to know about a loop kernel.
#pragma once
#include <vector>

#include "builder/codegen/value_ranges.h"
#include "formats/loop_ir/analysis.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln::codegen {

struct KernelFacts {
  explicit KernelFacts(const loop::LoopKernel& kernel);

  const loop::LoopKernel& kernel;
  loop::DimSet reduced = 0, parallel = 0;
  std::vector<loop::DimSet> varying;  // by expr
  // By expr: the number of reductions, one after the other, that it waits for.
  std::vector<uint32_t> level;
  uint32_t levels = 1;     // of the kernel: its reductions in a row, plus 1
  std::vector<bool> live;  // by expr: some store needs it
  // Whether floats are rounded to whole numbers, where an error in the last place of a quotient
  // could become a whole one.
  bool makes_whole = false;
  // By expr: a load or store of elements that nothing else loads or stores, at every point.
  std::vector<bool> touches_once;
  std::vector<Range> ranges;        // by expr
  std::vector<double> tolerances;   // by expr
  std::vector<bool> rounds_freely;  // by expr: see free_roundings()
  bool wide_index = false;          // some offset or count of points needs 64 bits

  const loop::Expr& expr(loop::ExprId id) const { return kernel.exprs[id]; }
  // What must be computed before it: its arguments, and the indices that it gathers by.
  std::vector<loop::ExprId> operands(loop::ExprId id) const;
  bool varies(loop::ExprId id, loop::DimSet dims) const { return (varying[id] & dims) != 0; }
  // A store at every point of the reduced dims too.
  bool stores_every_point(loop::ExprId id) const;
  int64_t extent(loop::DimSet dims) const;  // number of points; saturates at 2^62
  // Dims of the set, outermost first: along the last one the kernel moves in the smallest steps.
  std::vector<uint32_t> ordered(loop::DimSet dims) const;
};

bool contains(loop::DimSet dims, uint32_t dim);

}  // namespace kiln::codegen
