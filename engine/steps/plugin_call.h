// Step kind: one call of a plugin's host code.
#pragma once
#include "engine/steps/spaces.h"
#include "engine/steps/step_resources.h"

namespace kiln {

struct PreparedPluginCall {
  const plan::PluginCall* step = nullptr;
  PluginInstance instance;
};

Result<PreparedPluginCall> prepare_step(const plan::PluginCall& step,
                                        const StepResources& resources);
Result<> run_step(const PreparedPluginCall& step, const Spaces& spaces, CallAddresses& addresses,
                  Stream stream);

}  // namespace kiln
