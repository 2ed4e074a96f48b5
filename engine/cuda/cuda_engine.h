// The CUDA target's engine: what all contexts share on the GPU.
#pragma once
#include <memory>

#include "engine/context/context.h"
#include "engine/engine.h"
#include "engine/steps/step_resources.h"

namespace kiln::cuda {

// Opens the GPU, copies the weights there, loads modules and libraries, prepares every step.
// kUnsupported: no GPU, driver or library, or this runtime was built without target cuda.
// kVersionMismatch: built for another GPU or version, with both.
// REQUIRES: `engine` has its plan and staging and outlives the result.
Result<std::unique_ptr<const TargetEngine>> load_cuda_engine(const LoadedEngine& engine,
                                                             const StepResources& resources,
                                                             const LoadOptions& options);

}  // namespace kiln::cuda
