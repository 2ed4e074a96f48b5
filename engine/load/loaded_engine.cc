#include "engine/load/loaded_engine.h"

#include "engine/context/host_context.h"
#include "engine/cuda/cuda_engine.h"
#include "engine/load/check_origin.h"
#include "engine/load/engine_info.h"

namespace kiln {
namespace {

Result<std::vector<Plugin>> find_plugins(const plan::Plan& plan, const LoadOptions& options) {
  std::vector<Plugin> found;
  if (plan.plugins.empty()) return found;
  KILN_ASSIGN_OR_RETURN(const std::vector<Plugin> loaded, load_plugins(options.plugins));
  for (const plan::PluginReference& wanted : plan.plugins) {
    if (const Plugin* plugin = find_plugin(loaded, wanted.name, wanted.version)) {
      found.push_back(*plugin);
    } else if (const Plugin* other = find_plugin(loaded, wanted.name)) {
      return Error{ErrorCode::kVersionMismatch,
                   "plugin '" + wanted.name + "' has version '" + other->version() +
                       "', the engine was built with '" + wanted.version + "'"};
    } else {
      return Error{ErrorCode::kUnsupported,
                   "needs plugin '" + wanted.name + "' version '" + wanted.version + "', which " +
                       (options.plugins.empty() ? "no library was given for"
                                                : "none of the given libraries has") +
                       "; give its library with LoadOptions::plugins"};
    }
  }
  return found;
}

Result<> prepare(LoadedEngine& engine, const LoadOptions& options) {
  KILN_RETURN_IF_ERROR(check_origin(engine.plan.origin, options));
  KILN_ASSIGN_OR_RETURN(engine.plugins, find_plugins(engine.plan, options));
  for (const plan::ShapePoint& point : engine.plan.points) {
    engine.staging.push_back(lay_out_staging(engine.plan, point));
  }
  const StepResources resources{engine.plan, options.host_kernels, engine.plugins};
  KILN_ASSIGN_OR_RETURN(engine.target, engine.plan.origin.target == plan::Target::kCuda
                                           ? cuda::load_cuda_engine(engine, resources, options)
                                           : load_host_engine(engine, resources));
  engine.info = make_info(engine.plan, *engine.target);
  return Ok();
}

}  // namespace

Result<std::shared_ptr<const LoadedEngine>> load_engine(plan::Plan plan, std::string_view name,
                                                        const LoadOptions& options) {
  auto engine = std::make_shared<LoadedEngine>();
  engine->plan = std::move(plan);
  auto prepared = prepare(*engine, options);
  if (!prepared) return std::move(prepared).error().context("engine '" + std::string(name) + "'");
  return std::shared_ptr<const LoadedEngine>(std::move(engine));
}

}  // namespace kiln
