// LoadedEngine: everything that the threads running one engine share.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/request/staging.h"
#include "engine/steps/program.h"

namespace kiln {

// Immutable once loaded; stays where it is, because programs point into the plan.
struct LoadedEngine {
  plan::Plan plan;
  std::vector<Plugin> plugins;         // by the plan's numbers
  std::vector<Program> programs;       // by shape point
  std::vector<StagingLayout> staging;  // by shape point
  uint64_t context_bytes = 0;          // arena and staging of the largest shape point
  EngineInfo info;

  LoadedEngine() = default;
  LoadedEngine(const LoadedEngine&) = delete;
  LoadedEngine& operator=(const LoadedEngine&) = delete;
};

// `name` stands for the file in messages; errors are those of Engine::load.
Result<std::shared_ptr<const LoadedEngine>> load_engine(plan::Plan plan, std::string_view name,
                                                        const LoadOptions& options);

}  // namespace kiln
