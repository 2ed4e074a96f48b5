// Writes the exprs of a loop kernel in the making; equal exprs become one.
#pragma once
#include <string>
#include <vector>

#include "formats/loop_ir/analysis.h"
#include "formats/loop_ir/loop_kernel.h"
#include "formats/result.h"

namespace kiln::codegen {

// Why a body can't be one loop kernel, in one line.
Error refuse(std::string reason);

class ExprWriter {
 public:
  explicit ExprWriter(std::vector<loop::Dim> dims);

  Result<loop::ExprId> emit(loop::Expr expr);
  Result<loop::ExprId> constant(DType dtype, uint64_t bits);
  Result<loop::ExprId> iota(const loop::IndexMap& map);
  Result<loop::ExprId> apply(ScalarFn fn, DType dtype, std::vector<loop::ExprId> args);
  // map `fn` limit, as a bool.
  Result<loop::ExprId> compare(ScalarFn fn, const loop::IndexMap& map, int64_t limit);

  // The dims that an index varies with, also through the exprs that it gathers by.
  loop::DimSet varying(const loop::IndexMap& map) const;
  // The reduced dims of more than one point.
  loop::DimSet reduced() const { return reduced_; }

  loop::LoopKernel kernel;

 private:
  loop::DimSet reduced_ = 0;
  std::vector<loop::DimSet> varying_;  // of kernel.exprs
};

}  // namespace kiln::codegen
