// The passes that every build runs, in order.
#pragma once
#include <span>

#include "builder/pipeline/pass.h"

namespace kiln {

std::span<const Pass> default_pipeline();

}  // namespace kiln
