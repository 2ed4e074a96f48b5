// Opaque operations spelled out in pointwise operations, reductions and data movement, so that they
// become loop kernels: the CUDA target has no other code for them.
#pragma once
#include "builder/ir/graph.h"

namespace kiln {

// Whether products and convolutions are spelled out too: for the types that no library takes.
enum class Anchors : uint8_t { kKeep, kSpellOut };

// The body without Opaque nodes. Refuses, with a one-line reason, an operation that has no such
// form, or only one that is out of proportion.
Result<ir::Graph> spell_out_operations(const ir::Graph& body, Anchors anchors = Anchors::kKeep);

}  // namespace kiln
