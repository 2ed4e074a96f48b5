// The host target's engine and contexts: steps run in the calling thread.
#pragma once
#include <memory>

#include "engine/context/context.h"
#include "engine/steps/step_resources.h"

namespace kiln {

// `engine` has its plan and staging already. Errors name point, step and region.
Result<std::unique_ptr<const TargetEngine>> load_host_engine(const LoadedEngine& engine,
                                                             const StepResources& resources);

}  // namespace kiln
