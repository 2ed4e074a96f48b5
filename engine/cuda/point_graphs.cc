#include "engine/cuda/point_graphs.h"

#include <algorithm>
#include <utility>

namespace kiln::cuda {
namespace {

using plan::BufferRef;

// Calls `visit` with every buffer that a step touches.
template <class Visit>
void visit_buffers(const plan::StepAction& action, const Visit& visit) {
  std::visit(
      [&](const auto& step) {
        if constexpr (requires { step.inputs; }) {
          for (const plan::Operand& operand : step.inputs) visit(operand.buffer);
          for (const plan::Operand& operand : step.outputs) visit(operand.buffer);
        } else if constexpr (requires { step.from; }) {
          visit(step.from);
          visit(step.to);
        } else if constexpr (requires { step.iteration; }) {
          visit(step.trip_count);
          visit(step.condition);
          visit(step.iteration);
        } else {
          visit(step.condition);
        }
      },
      action);
}

// Steps whose launches can be made to take other addresses.
std::vector<bool> bindable_steps(const CudaProgram& program,
                                 const std::vector<SegmentGraph>& graphs) {
  std::vector<bool> bindable(program.steps.size());
  for (const SegmentGraph& graph : graphs) {
    for (const IoLaunch& launch : graph.launches) bindable[launch.step] = launch.node != nullptr;
  }
  return bindable;
}

bool has_moved(const plan::KernelLaunch& launch, const IoAddresses& from, const IoAddresses& to) {
  const auto moved = [&](const plan::Operand& operand) {
    const BufferRef& buffer = operand.buffer;
    if (buffer.space == BufferRef::Space::kInput) {
      return from.inputs[buffer.index] != to.inputs[buffer.index];
    }
    return buffer.space == BufferRef::Space::kOutput &&
           from.outputs[buffer.index] != to.outputs[buffer.index];
  };
  return std::any_of(launch.inputs.begin(), launch.inputs.end(), moved) ||
         std::any_of(launch.outputs.begin(), launch.outputs.end(), moved);
}

}  // namespace

PointGraphs::PointGraphs(const CudaProgram& program, std::vector<SegmentGraph> graphs,
                         IoAddresses captured)
    : program_(program),
      graphs_(std::move(graphs)),
      takes_input_(captured.inputs.size()),
      takes_output_(captured.outputs.size()),
      bound_(std::move(captured)) {
  const std::vector<bool> bindable = bindable_steps(program, graphs_);
  std::vector<bool> barred_inputs(takes_input_.size()), barred_outputs(takes_output_.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    visit_buffers(program.point->steps[i].action, [&](const BufferRef& buffer) {
      const bool input = buffer.space == BufferRef::Space::kInput;
      if (!input && buffer.space != BufferRef::Space::kOutput) return;
      (input ? takes_input_ : takes_output_)[buffer.index] = true;
      if (!bindable[i]) (input ? barred_inputs : barred_outputs)[buffer.index] = true;
    });
  }
  for (size_t i = 0; i < barred_inputs.size(); ++i) {
    if (barred_inputs[i]) takes_input_[i] = false;
  }
  for (size_t i = 0; i < barred_outputs.size(); ++i) {
    if (barred_outputs[i]) takes_output_[i] = false;
  }
}

Result<> PointGraphs::bind(const Spaces& spaces, const IoAddresses& wanted) {
  if (is_bound(wanted)) return Ok();
  const std::optional<IoAddresses> before = std::exchange(bound_, std::nullopt);
  for (const SegmentGraph& graph : graphs_) {
    for (const IoLaunch& launch : graph.launches) {
      const auto& step = std::get<PreparedKernelLaunch>(program_.steps[launch.step]);
      if (launch.node == nullptr) continue;
      if (before && !has_moved(*step.step, *before, wanted)) continue;
      KILN_RETURN_IF_ERROR(rebind(step, spaces, graph.exec.get(), launch.node));
    }
  }
  bound_ = wanted;
  return Ok();
}

}  // namespace kiln::cuda
