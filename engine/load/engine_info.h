// EngineInfo from a plan.
#pragma once
#include "engine/engine.h"
#include "formats/engine_file/plan.h"

namespace kiln {

EngineInfo make_info(const plan::Plan& plan, uint64_t context_bytes);

}  // namespace kiln
