// LoadedEngine: everything that the threads running one engine share.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "engine/context/context.h"
#include "engine/engine.h"
#include "engine/plugin_library.h"
#include "engine/request/staging.h"

namespace kiln {

// Immutable once loaded; stays where it is, because the target points into the plan.
struct LoadedEngine {
  plan::Plan plan;
  std::vector<Plugin> plugins;         // by the plan's numbers
  std::vector<StagingLayout> staging;  // by shape point
  EngineInfo info;
  std::unique_ptr<const TargetEngine> target;  // programs and what they need

  LoadedEngine() = default;
  LoadedEngine(const LoadedEngine&) = delete;
  LoadedEngine& operator=(const LoadedEngine&) = delete;
};

// `name` stands for the file in messages; errors are those of Engine::load.
Result<std::shared_ptr<const LoadedEngine>> load_engine(plan::Plan plan, std::string_view name,
                                                        const LoadOptions& options);

}  // namespace kiln
