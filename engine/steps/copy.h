// Step kind: bytes from one buffer to another.
#pragma once
#include "engine/steps/spaces.h"

namespace kiln {

void run_step(const plan::Copy& step, const Spaces& spaces);

}  // namespace kiln
