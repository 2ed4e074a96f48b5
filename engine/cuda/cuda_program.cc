#include "engine/cuda/cuda_program.h"

#include <algorithm>
#include <string>

#include "engine/cuda/captured_node.h"
#include "engine/cuda/host_step.h"

namespace kiln::cuda {
namespace {

bool is_device_step(const PreparedStep& step) { return step.index() < 4; }
static_assert(std::is_same_v<std::variant_alternative_t<3, PreparedStep>, PreparedCopy>);

class Preparation {
 public:
  Preparation(const DeviceResources& device, const StepResources& host)
      : device_(device), host_(host) {}

  Result<PreparedStep> operator()(const plan::HostOperation& step) const {
    return wrap(kiln::prepare_step(step, host_));
  }
  Result<PreparedStep> operator()(const plan::PluginCall& step) const {
    return wrap(kiln::prepare_step(step, host_));
  }
  Result<PreparedStep> operator()(const plan::Branch& step) const { return PreparedStep(&step); }
  Result<PreparedStep> operator()(const plan::Repeat& step) const { return PreparedStep(&step); }
  template <class DeviceStep>
  Result<PreparedStep> operator()(const DeviceStep& step) const {
    return wrap(cuda::prepare_step(step, device_));
  }

 private:
  template <class Prepared>
  static Result<PreparedStep> wrap(Result<Prepared> prepared) {
    if (!prepared) return std::move(prepared).error();
    return PreparedStep(*std::move(prepared));
  }

  const DeviceResources& device_;
  const StepResources& host_;
};

// Finds the segments of the span [first, last) and of what is nested in it.
void find_segments(CudaProgram& program, size_t first, size_t last) {
  for (size_t i = first; i < last;) {
    if (is_device_step(program.steps[i])) {
      size_t end = i + 1;
      while (end < last && is_device_step(program.steps[end])) ++end;
      program.segment_at[i] = static_cast<uint32_t>(program.segments.size());
      program.segments.push_back({i, end});
      i = end;
    } else if (const auto* branch = std::get_if<const plan::Branch*>(&program.steps[i])) {
      const size_t then_end = i + 1 + (*branch)->then_steps;
      find_segments(program, i + 1, then_end);
      find_segments(program, then_end, then_end + (*branch)->else_steps);
      i = then_end + (*branch)->else_steps;
    } else if (const auto* repeat = std::get_if<const plan::Repeat*>(&program.steps[i])) {
      find_segments(program, i + 1, i + 1 + (*repeat)->body_steps);
      i += 1 + (*repeat)->body_steps;
    } else {
      ++i;
    }
  }
}

bool touches_io(const plan::KernelLaunch& launch) {
  using Space = plan::BufferRef::Space;
  const auto is_io = [](const plan::Operand& operand) {
    return operand.buffer.space == Space::kInput || operand.buffer.space == Space::kOutput;
  };
  return std::any_of(launch.inputs.begin(), launch.inputs.end(), is_io) ||
         std::any_of(launch.outputs.begin(), launch.outputs.end(), is_io);
}

uint64_t scratch_bytes(const plan::StepAction& action) {
  if (const auto* step = std::get_if<plan::HostOperation>(&action)) return scratch_of(*step);
  if (const auto* step = std::get_if<plan::PluginCall>(&action)) return scratch_of(*step);
  return 0;
}

}  // namespace

std::string step_name(const plan::ShapePoint& point, size_t step) {
  return "point '" + point.name + "': '" + point.region_names[point.steps[step].region] + "'";
}

Result<CudaProgram> prepare_program(const plan::ShapePoint& point,
                                    const DeviceResources& device_resources,
                                    const StepResources& host_resources) {
  const Preparation prepare(device_resources, host_resources);
  CudaProgram program;
  program.point = &point;
  for (size_t i = 0; i < point.steps.size(); ++i) {
    auto prepared = std::visit(prepare, point.steps[i].action);
    if (!prepared) {
      return std::move(prepared).error().context(step_name(point, i) + ": step " +
                                                 std::to_string(i));
    }
    program.steps.push_back(*std::move(prepared));
    program.scratch_bytes = std::max(program.scratch_bytes, scratch_bytes(point.steps[i].action));
  }
  program.segment_at.assign(program.steps.size(), CudaProgram::kNone);
  find_segments(program, 0, program.steps.size());
  return program;
}

Result<std::vector<IoLaunch>> enqueue_segment(const CudaProgram& program, const Segment& segment,
                                              const Spaces& spaces, CUstream stream) {
  std::vector<IoLaunch> launches;
  for (size_t i = segment.first; i < segment.end; ++i) {
    auto enqueued = std::visit(
        [&](const auto& step) -> Result<> {
          if constexpr (requires { cuda::enqueue_step(step, spaces, stream); }) {
            return cuda::enqueue_step(step, spaces, stream);
          } else {
            return Error{ErrorCode::kInternal, "a host step in a device segment"};
          }
        },
        program.steps[i]);
    if (!enqueued) return std::move(enqueued).error().context(step_name(*program.point, i));
    const auto* launch = std::get_if<PreparedKernelLaunch>(&program.steps[i]);
    if (launch == nullptr || !touches_io(*launch->step)) continue;
    launches.push_back({i, latest_node(*launch->device, stream)});
  }
  return launches;
}

}  // namespace kiln::cuda
