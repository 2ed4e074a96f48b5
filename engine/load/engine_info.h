// EngineInfo from a plan.
#pragma once
#include "engine/context/context.h"
#include "engine/engine.h"
#include "formats/engine_file/plan.h"

namespace kiln {

EngineInfo make_info(const plan::Plan& plan, const TargetEngine& target);

}  // namespace kiln
