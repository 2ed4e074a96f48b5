// From calls of host kernels to steps of the device: loops become generated kernels, matmuls and
// convolutions library calls. What has no device form stays a host call if the lowering allows it.
#pragma once
#include "builder/tactics/tactic.h"

namespace kiln {

// An attribute of a "loop" call: the schedule to generate its kernel with, as text. Without, the
// best guess.
inline constexpr const char* kScheduleAttribute = "schedule";

// kUnsupported: a step has no code for the GPU. REQUIRES: the query has tools.
Result<> lower_device(const TacticQuery& query, Lowered& lowered);

}  // namespace kiln
