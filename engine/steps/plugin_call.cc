#include "engine/steps/plugin_call.h"

#include "engine/steps/call_rules.h"

namespace kiln {

Result<PreparedPluginCall> prepare_step(const plan::PluginCall& step,
                                        const StepResources& resources) {
  const Plugin& plugin = resources.plugins[step.plugin];
  const auto attributes = resources.plan.blobs[step.attributes].bytes;
  const std::string_view json(reinterpret_cast<const char*>(attributes.data()), attributes.size());
  PreparedPluginCall prepared{.step = &step, .instance = {}};
  KILN_ASSIGN_OR_RETURN(prepared.instance,
                        plugin.instantiate(json, types_of(step.inputs), types_of(step.outputs)));
  KILN_RETURN_IF_ERROR(check_workspace(step.workspace, prepared.instance.workspace_bytes()));
  KILN_RETURN_IF_ERROR(
      check_overlaps(step.inputs, step.outputs, step.workspace, [](size_t) { return false; }));
  return prepared;
}

Result<> run_step(const PreparedPluginCall& step, const Spaces& spaces, CallAddresses& addresses,
                  Stream stream) {
  addresses.resolve(spaces, step.step->inputs, step.step->outputs);
  return step.instance.run(addresses.inputs, addresses.outputs, spaces.write(step.step->workspace),
                           stream);
}

}  // namespace kiln
