#include "formats/loop_ir/in_place.h"

#include <algorithm>

namespace kiln::loop {

bool may_overwrite(const LoopKernel& kernel, uint32_t input) {
  const auto first_output = std::ranges::find_if(kernel.buffers, &Buffer::output);
  if (first_output == kernel.buffers.end() || input >= kernel.buffers.size()) return false;
  const Buffer& from = kernel.buffers[input];
  if (from.output || bits_of(from.dtype) != bits_of(first_output->dtype)) return false;
  if (from.elements != first_output->elements || bits_of(from.dtype) < 8) return false;
  const bool reduces = std::ranges::any_of(
      kernel.exprs, [](const Expr& e) { return e.kind == Expr::Kind::kReduce; });
  if (reduces && std::next(first_output) != kernel.buffers.end()) return false;
  const auto output = static_cast<uint32_t>(first_output - kernel.buffers.begin());
  const auto is_store = [&](const Expr& e) {
    return e.kind == Expr::Kind::kStore && e.buffer == output;
  };
  const Expr& store = *std::ranges::find_if(kernel.exprs, is_store);
  for (ExprId id = 0; id < kernel.exprs.size(); ++id) {
    const Expr& load = kernel.exprs[id];
    if (load.kind != Expr::Kind::kLoad || load.buffer != input) continue;
    if (load.map != store.map || !load.bounds.empty()) return false;
    for (const Expr& e : kernel.exprs) {
      if (e.kind == Expr::Kind::kStore && e.args[0] == id && !is_store(e)) return false;
    }
  }
  return true;
}

}  // namespace kiln::loop
