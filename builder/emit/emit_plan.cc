#include "builder/emit/emit_plan.h"

#include <algorithm>

#include "builder/emit/place_buffers.h"

namespace kiln {
namespace {

using plan::BufferRef;

std::string_view text_of(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Resolves a lowering's buffers to placed ones.
class Resolver {
 public:
  Resolver(const ScheduledRegion& region, const ir::Graph& graph, const PlacedRegion& placed)
      : region_(region), node_(graph.node(region.node)), graph_(graph), placed_(placed) {}

  BufferRef ref(LocalBuffer buffer) const {
    switch (buffer.kind) {
      case LocalBuffer::Kind::kInput:
        return placed_.inputs[buffer.index];
      case LocalBuffer::Kind::kOutput:
        return placed_.outputs[buffer.index];
      case LocalBuffer::Kind::kTemporary:
        return placed_.temporaries[buffer.index];
      case LocalBuffer::Kind::kConstant:
        return placed_.constants[buffer.index];
      case LocalBuffer::Kind::kNone:
        break;
    }
    return {};
  }

  std::vector<plan::Operand> operands(std::span<const LocalBuffer> buffers) const {
    std::vector<plan::Operand> operands;
    for (LocalBuffer buffer : buffers) operands.push_back({ref(buffer), type(buffer)});
    return operands;
  }

  BufferRef workspace(uint64_t bytes) const {
    BufferRef ref = placed_.workspace;
    ref.bytes = bytes;
    return bytes ? ref : BufferRef{};
  }

 private:
  TensorType type(LocalBuffer buffer) const {
    switch (buffer.kind) {
      case LocalBuffer::Kind::kInput:
        return graph_.type(node_.inputs[buffer.index]);
      case LocalBuffer::Kind::kOutput:
        return graph_.type(node_.outputs[buffer.index]);
      case LocalBuffer::Kind::kConstant:
        return region_.lowered.constants[buffer.index].type;
      default:
        return region_.lowered.temporaries[buffer.index];
    }
  }

  const ScheduledRegion& region_;
  const ir::Node& node_;
  const ir::Graph& graph_;
  const PlacedRegion& placed_;
};

// A kernel that waits by itself may be launched before the device step in front of it has ended.
// Behind anything else the launch itself waits.
void choose_programmatic(std::vector<plan::Step>& steps) {
  bool behind_kernel = false;
  for (plan::Step& step : steps) {
    auto* launch = std::get_if<plan::KernelLaunch>(&step.action);
    if (launch != nullptr) launch->programmatic = launch->programmatic && behind_kernel;
    behind_kernel = std::visit(
        []<class Action>(const Action&) { return plan::kRunsOnDevice<Action>; }, step.action);
  }
}

}  // namespace

uint32_t PlanBuilder::plugin_number(const std::string& name, const std::string& version) {
  const plan::PluginReference wanted{name, version};
  const auto found = std::find(plan_.plugins.begin(), plan_.plugins.end(), wanted);
  const auto number = static_cast<uint32_t>(found - plan_.plugins.begin());
  if (found == plan_.plugins.end()) plan_.plugins.push_back(wanted);
  return number;
}

void PlanBuilder::add_steps(const ScheduledRegion& region, uint32_t number, const ir::Graph& graph,
                            const PlacedRegion& placed, std::vector<plan::Step>& steps) {
  const Resolver resolve(region, graph, placed);
  const auto action = [&](const LocalStep& step) -> plan::StepAction {
    if (const auto* call = std::get_if<HostCall>(&step)) {
      return plan::HostOperation{blobs_.add(encode(call->operation)),
                                 resolve.operands(call->inputs), resolve.operands(call->outputs),
                                 resolve.workspace(call->workspace_bytes)};
    }
    if (const auto* call = std::get_if<HostPluginCall>(&step)) {
      return plan::PluginCall{plugin_number(call->name, call->version),
                              blobs_.add(call->attributes), resolve.operands(call->inputs),
                              resolve.operands(call->outputs),
                              resolve.workspace(call->workspace_bytes)};
    }
    if (const auto* launch = std::get_if<LocalLaunch>(&step)) {
      return plan::KernelLaunch{blobs_.add(text_of(launch->cubin)),
                                launch->entry,
                                launch->grid,
                                launch->block,
                                launch->shared_bytes,
                                launch->programmatic,
                                resolve.operands(launch->inputs),
                                resolve.operands(launch->outputs),
                                resolve.workspace(launch->workspace_bytes),
                                launch->tensor_maps};
    }
    if (const auto* call = std::get_if<LibraryCall>(&step)) {
      const uint32_t operation = blobs_.add(encode(call->operation));
      const auto inputs = resolve.operands(call->inputs), outputs = resolve.operands(call->outputs);
      const BufferRef workspace = resolve.workspace(call->workspace_bytes);
      if (call->library == LibraryCall::Library::kCudnn) {
        return plan::CudnnGraph{operation, inputs, outputs, workspace};
      }
      return plan::Matmul{operation, inputs, outputs, workspace};
    }
    if (const auto* copy = std::get_if<LocalCopy>(&step)) {
      return plan::Copy{resolve.ref(copy->from), resolve.ref(copy->to)};
    }
    if (const auto* branch = std::get_if<LocalBranch>(&step)) {
      return plan::Branch{resolve.ref(branch->condition), branch->then_steps, branch->else_steps};
    }
    const auto& repeat = std::get<LocalRepeat>(step);
    return plan::Repeat{resolve.ref(repeat.trip_count), resolve.ref(repeat.condition),
                        resolve.ref(repeat.iteration), repeat.body_steps};
  };
  for (const LocalStep& step : region.lowered.steps) steps.push_back({number, action(step)});
}

report::Memory PlanBuilder::add_point(const Schedule& schedule) {
  const ir::Graph& graph = schedule.graph;
  Placed placed = place_buffers(schedule, constants_, apart_bytes_);
  plan::ShapePoint point;
  point.name = schedule.point.name;
  point.batch = schedule.point.batch;
  const bool first = plan_.points.empty();
  for (uint32_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Value& value = graph.value(graph.inputs()[i]);
    point.inputs.push_back(value.type);
    const auto axis = schedule.point.batch_axes.find(value.name);
    if (first) {
      plan_.inputs.push_back(
          {value.name, axis == schedule.point.batch_axes.end() ? -1 : axis->second});
    }
    const auto fixed = schedule.point.fixed_values.find(value.name);
    if (fixed != schedule.point.fixed_values.end()) {
      point.fixed_inputs.push_back({i, fixed->second.bytes});
    }
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    point.outputs.push_back(graph.type(graph.outputs()[i]));
    if (first) plan_.outputs.push_back({graph.output_name(i), -1});
  }
  point.arena_bytes = placed.memory.arena_bytes;
  point.arena_lower_bound_bytes = placed.memory.lower_bound_bytes;
  for (uint32_t i = 0; i < schedule.regions.size(); ++i) {
    const ScheduledRegion& region = schedule.regions[i];
    point.region_names.push_back(region.name);
    if (!region.alias) add_steps(region, i, graph, placed.regions[i], point.steps);
  }
  const auto outputs_number = static_cast<uint32_t>(point.region_names.size());
  if (!placed.final_copies.empty()) point.region_names.emplace_back("outputs");
  for (plan::Copy& copy : placed.final_copies) point.steps.push_back({outputs_number, copy});
  choose_programmatic(point.steps);
  plan_.points.push_back(std::move(point));
  return std::move(placed.memory);
}

plan::Plan PlanBuilder::finish() && {
  plan_.constants = constants_.constants();
  plan_.blobs = blobs_.blobs();
  plan_.weights = constants_.weights();
  return std::move(plan_);
}

}  // namespace kiln
