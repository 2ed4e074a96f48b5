#include "builder/verify/locate_fault.h"

#include <map>

#include "builder/emit/emit_plan.h"
#include "builder/verify/compare.h"
#include "formats/engine_file/write_engine.h"

namespace kiln {
namespace {

using ir::ValueId;

// The schedule with every region's outputs made outputs of the graph too.
Schedule with_all_outputs(const Schedule& schedule) {
  Schedule copy = schedule;
  for (size_t i = 0; i < copy.graph.outputs().size(); ++i) {
    copy.graph.set_output_name(i, "output" + std::to_string(i));
  }
  for (ScheduledRegion& region : copy.regions) {
    region.lowered.in_place_inputs.clear();
    const auto outputs = copy.graph.node(region.node).outputs;
    for (ValueId id : outputs) {
      copy.graph.mark_output(id);
      copy.graph.set_output_name(copy.graph.outputs().size() - 1,
                                 "value" + std::to_string(ir::index_of(id)));
    }
  }
  return copy;
}

using Values = std::map<ValueId, HostTensor>;

Result<Values> run_all(const Schedule& schedule, std::span<const HostTensor> inputs,
                       const LoadOptions& options) {
  PlanBuilder builder;
  builder.add_point(schedule);
  plan::Plan plan = std::move(builder).finish();
  KILN_ASSIGN_OR_RETURN(auto bytes, to_bytes(plan));
  LoadOptions unverified = options;
  unverified.allow_unverified = true;
  KILN_ASSIGN_OR_RETURN(const Engine engine,
                        Engine::load_bytes(SharedBytes::take(std::move(bytes)), unverified));
  const ir::Graph& graph = schedule.graph;
  std::vector<Tensor> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto* data = const_cast<std::byte*>(inputs[i].bytes.data());  // inputs are never written
    in.push_back({"", inputs[i].type, data});
  }
  std::vector<std::vector<std::byte>> blocks;
  for (ValueId id : graph.outputs()) {
    blocks.emplace_back(static_cast<size_t>(graph.type(id).bytes()));
    out.push_back({"", graph.type(id), blocks.back().data()});
  }
  KILN_RETURN_IF_ERROR(engine.infer(in, out));
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i]] = inputs[i];
  for (size_t i = 0; i < blocks.size(); ++i) {
    values[graph.outputs()[i]] = {out[i].type, SharedBytes::take(std::move(blocks[i]))};
  }
  return values;
}

// The region's body on the values that the engine itself gave it.
Result<std::string> region_error(const Schedule& schedule, const ScheduledRegion& region,
                                 const Values& values, const ReferenceOptions& reference) {
  const ir::Graph& graph = schedule.graph;
  const ir::Node& node = graph.node(region.node);
  std::vector<HostTensor> inputs;
  for (ValueId id : node.inputs) {
    const ir::Value& value = graph.value(id);
    inputs.push_back(value.constant ? HostTensor{value.type, *value.constant} : values.at(id));
  }
  const ir::Graph& body = *std::get<ir::Region>(node.op).body;
  KILN_ASSIGN_OR_RETURN(const auto want, run_reference(body, inputs, reference));
  const bool tf32 = uses_tf32(region.lowered);
  for (size_t i = 0; i < want.size(); ++i) {
    const HostTensor& got = values.at(node.outputs[i]);
    const Comparison result = compare(got.type, got.bytes.data(), want[i].bytes.data(),
                                      accuracy_within(body, got.type.dtype, tf32));
    if (!result.passed) return result.worst;
  }
  return std::string();
}

}  // namespace

Result<Fault> locate_fault(const Schedule& schedule, std::span<const HostTensor> inputs,
                           std::span<const HostTensor> want, const LoadOptions& options,
                           const ReferenceOptions& reference) {
  const Schedule all = with_all_outputs(schedule);
  KILN_ASSIGN_OR_RETURN(const Values values, run_all(all, inputs, options));
  for (size_t i = 0; i < all.regions.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const std::string error,
                          region_error(all, all.regions[i], values, reference));
    if (!error.empty()) {
      return Fault{i, "region '" + all.regions[i].name + "': " + error};
    }
  }
  for (size_t i = 0; i < want.size(); ++i) {
    const HostTensor& got = values.at(all.graph.outputs()[i]);
    KILN_ASSIGN_OR_RETURN(const HostTensor wanted, convert_tensor(want[i], got.type.dtype));
    const Comparison result =
        compare(got.type, got.bytes.data(), wanted.bytes.data(), accuracy_for(got.type.dtype));
    if (!result.passed) {
      return Fault{std::nullopt,
                   "every region agrees with its own body, so a pass changed the "
                   "model's meaning; find it with --disable-pass and --stop-after"};
    }
  }
  return Fault{std::nullopt, "every region is right alone, so buffers of the plan overlap"};
}

}  // namespace kiln
