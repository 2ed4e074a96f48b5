// Makes a lowering ready for emit: asks each kernel for its workspace and for what it can do in
// place. Fails with the kernel's own reason where one refuses the call.
#pragma once
#include "builder/tactics/tactic.h"

namespace kiln {

Result<> finish_lowering(const TacticQuery& query, Lowered& lowered);

// The type of a buffer of a lowering. REQUIRES: kind is not kNone.
const TensorType& type_of(const TacticQuery& query, const Lowered& lowered, LocalBuffer buffer);

}  // namespace kiln
