// A oneDNN primitive as a host kernel: its operands' layouts, constant weights reordered once, the
// scratchpad in the caller's workspace, exceptions turned into errors.
#pragma once
#include <dnnl.hpp>
#include <functional>
#include <vector>

#include "engine/host/kernel.h"
#include "engine/host/onednn/post_ops.h"

namespace kiln::host {

// A tensor as the caller has it and as the primitive wants it; they differ where oneDNN was free to
// choose. Then run() reorders, but for constants, which are reordered when the kernel is made.
struct Operand {
  int argument;  // DNNL_ARG_...
  dnnl::memory::desc given, wanted;
  const void* constant = nullptr;
};

struct PrimitiveParts {
  dnnl::engine engine;
  dnnl::primitive primitive;
  dnnl::memory::desc scratchpad;
  std::vector<Operand> inputs;  // in the order of the kernel's inputs
  Operand output;
};

// Reorders the constants. Throws dnnl::error.
KernelPtr make_primitive_kernel(PrimitiveParts parts);

// Attributes of a primitive: user scratchpad and the post-ops but for the bias. `result` describes
// the result as the caller has it.
dnnl::primitive_attr primitive_attributes(const std::vector<PostOp>& ops,
                                          const dnnl::memory::desc& result);

// The operands of "add" post-ops: appended to the inputs, after the bias.
void append_post_operands(const std::vector<PostOp>& ops, const dnnl::memory::desc& result,
                          PrimitiveParts& parts);

dnnl::memory::desc dense_desc(const Shape& shape);
// The same extents in whatever layout oneDNN likes best.
dnnl::memory::desc any_layout(const dnnl::memory::desc& desc);

// A primitive's description from the arguments that both generations of oneDNN agree on: 2.x wraps
// them in a descriptor of the operation, 3.x has none. Throws dnnl::error.
template <class Primitive, class... Args>
typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                            const dnnl::primitive_attr& attributes,
                                            const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, args..., attributes};
#else
  return {typename Primitive::desc(args...), attributes, engine};
#endif
}

// Calls make(); a dnnl::error becomes kUnsupported.
Result<KernelPtr> guarded(const Operation& operation,
                          const std::function<Result<KernelPtr>()>& make);
// kUnsupported for sizes that oneDNN, which counts in 32 bits in places, crashes on.
Result<> refuse_oversized(const Prepare& p);
// kUnsupported for implementations that are only there for completeness.
Result<> refuse_reference(const Operation& operation, const char* implementation);

}  // namespace kiln::host
