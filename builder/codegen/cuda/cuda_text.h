// CUDA C++ for the small pieces: types, constants, scalar expressions, index maps.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "formats/loop_ir/analysis.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln::codegen {

// The prelude's name of an element type: "bf16", "boolean".
std::string_view element_type(DType dtype);
// The C++ type that values of it are computed in: "float".
std::string_view register_type(DType dtype);
// "Sum", "Max".
std::string_view reduction_type(ReduceFn fn);
// A literal in the register type of the element whose bits these are.
std::string constant_text(DType dtype, uint64_t bits);

using ValueText = std::function<std::string(loop::ExprId)>;
// A call of the prelude's function for a kApply or kCast with these argument texts.
std::string scalar_text(const loop::LoopKernel& kernel, const loop::Expr& expr,
                        const ValueText& value);

// Writes index arithmetic, in int or long long. Dims and gathered indices have texts of their own.
struct IndexText {
  const loop::LoopKernel& kernel;
  bool wide = false;
  std::function<std::string(uint32_t dim)> dim;
  ValueText value;  // of a gathered index

  std::string_view type() const { return wide ? "long long" : "int"; }
  std::string literal(int64_t value) const;
  std::string map(const loop::IndexMap& map) const;
  // The condition that all bounds hold; empty if they always do.
  std::string bounds(const std::vector<loop::Bound>& bounds) const;
};

}  // namespace kiln::codegen
