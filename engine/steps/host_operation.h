// Step kind: one call of a kernel of kiln_host.
#pragma once
#include <memory>

#include "engine/steps/spaces.h"
#include "engine/steps/step_resources.h"

namespace kiln {

struct PreparedHostOperation {
  const plan::HostOperation* step = nullptr;
  std::unique_ptr<HostKernel> kernel;
};

Result<PreparedHostOperation> prepare_step(const plan::HostOperation& step,
                                           const StepResources& resources);
Result<> run_step(const PreparedHostOperation& step, const Spaces& spaces,
                  CallAddresses& addresses);

}  // namespace kiln
