#include "builder/tactics/cuda/lower_device.h"

#include <algorithm>
#include <limits>

#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/codegen/cuda/in_place.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/tactics/cuda/cublaslt_matmul.h"
#include "builder/tactics/cuda/cudnn_conv.h"
#include "builder/tactics/finish_lowering.h"

namespace kiln {
namespace {

class DeviceLowering {
 public:
  DeviceLowering(const TacticQuery& query, Lowered& lowered)
      : query_(query), tools_(*query.cuda), lowered_(lowered) {}

  Result<> run() {
    std::vector<LocalStep> steps;
    std::vector<size_t> first(lowered_.steps.size() + 1);  // new number of each old step
    for (size_t i = 0; i < lowered_.steps.size(); ++i) {
      first[i] = steps.size();
      KILN_RETURN_IF_ERROR(lower(lowered_.steps[i], steps));
    }
    first.back() = steps.size();
    renumber(first, steps);
    if (!lowered_.steps.empty()) find_in_place(lowered_.steps.back(), steps);
    lowered_.steps = std::move(steps);
    return Ok();
  }

 private:
  Result<> lower(LocalStep& step, std::vector<LocalStep>& steps) {
    const auto* call = std::get_if<HostCall>(&step);
    if (call != nullptr && call->operation.name == "loop") return lower_loop(*call, steps);
    if (call != nullptr) {
      auto library = library_call(*call);
      if (library.ok()) {
        library->inputs = call->inputs;
        library->outputs = call->outputs;
        steps.emplace_back(std::move(*library));
        return Ok();
      }
      if (!lowered_.may_use_host) return std::move(library).error();
    }
    steps.push_back(std::move(step));
    return Ok();
  }

  Result<LibraryCall> library_call(const HostCall& call) const {
    const Operation& operation = call.operation;
    const auto type = [&](LocalBuffer buffer) { return type_of(query_, lowered_, buffer); };
    if (operation.name == "matmul" && call.inputs.size() == 2) {
      const ir::MatMul op{operation.get_int("transpose_a", 0) != 0,
                          operation.get_int("transpose_b", 0) != 0};
      const MatmulRequest request{op, type(call.inputs[0]), type(call.inputs[1]),
                                  type(call.outputs[0])};
      KILN_ASSIGN_OR_RETURN(auto choices, cublaslt_choices(tools_, request, 1));
      return std::move(choices.front().call);
    }
    KILN_ASSIGN_OR_RETURN(ConvRequest request, conv_request(call));
    KILN_ASSIGN_OR_RETURN(auto choices, cudnn_choices(tools_, request, 1));
    return std::move(choices.front().call);
  }

  Result<ConvRequest> conv_request(const HostCall& call) const {
    ConvRequest request;
    KILN_ASSIGN_OR_RETURN(request.op, conv_op(call.operation));
    for (LocalBuffer buffer : call.inputs) {
      if (buffer.kind == LocalBuffer::Kind::kNone) continue;
      request.inputs.push_back(type_of(query_, lowered_, buffer));
    }
    request.output = type_of(query_, lowered_, call.outputs[0]);
    return request;
  }

  // The last step may compute output 0 in an input's memory if it is a loop of one kernel, nothing
  // before it has to do with either buffer, and control flow does not run it twice.
  void find_in_place(const LocalStep& last, const std::vector<LocalStep>& steps) {
    const auto* call = std::get_if<HostCall>(&last);
    const auto* launch = steps.empty() ? nullptr : std::get_if<LocalLaunch>(&steps.back());
    if (call == nullptr || launch == nullptr || call->operation.name != "loop") return;
    if (call->outputs[0] != LocalBuffer{LocalBuffer::Kind::kOutput, 0}) return;
    for (size_t position : overwritable_) {
      const LocalBuffer input = call->inputs[position];
      if (input.kind != LocalBuffer::Kind::kInput) continue;
      if (std::ranges::count(call->inputs, input) != 1) continue;
      const auto touches = [&](const LocalStep& step) {
        return uses(step, input) || uses(step, call->outputs[0]);
      };
      if (std::any_of(steps.begin(), steps.end() - 1, touches)) continue;
      lowered_.in_place_inputs.push_back(input.index);
    }
  }

  // Control flow counts as a use of everything.
  static bool uses(const LocalStep& step, LocalBuffer buffer) {
    return std::visit(
        [&](const auto& action) {
          if constexpr (requires { action.outputs; }) {
            return std::ranges::count(action.inputs, buffer) > 0 ||
                   std::ranges::count(action.outputs, buffer) > 0;
          } else if constexpr (requires { action.to; }) {
            return action.from == buffer || action.to == buffer;
          } else {
            return true;
          }
        },
        step);
  }

  static Result<ir::Op> conv_op(const Operation& operation) {
    const auto fill = [&](auto op) {
      op.strides = operation.get_ints("strides");
      op.dilations = operation.get_ints("dilations");
      op.pads_begin = operation.get_ints("pads_begin");
      op.pads_end = operation.get_ints("pads_end");
      op.groups = operation.get_int("groups", 1);
      return op;
    };
    if (operation.name == "conv") return ir::Op(fill(ir::Conv{}));
    if (operation.name == "conv_transpose") {
      ir::ConvTranspose op = fill(ir::ConvTranspose{});
      op.output_padding = operation.get_ints("output_padding");
      return ir::Op(op);
    }
    return Error{ErrorCode::kUnsupported, "'" + operation.name + "' has no code for the GPU"};
  }

  Result<> lower_loop(const HostCall& call, std::vector<LocalStep>& steps) {
    const std::string encoded = call.operation.get_string("kernel", "");
    KILN_ASSIGN_OR_RETURN(const auto kernel,
                          loop::decode_loop_kernel(std::as_bytes(std::span(encoded))));
    KILN_ASSIGN_OR_RETURN(const codegen::CudaSchedule schedule,
                          schedule_of(call.operation, kernel));
    KILN_ASSIGN_OR_RETURN(const codegen::CudaSource source, codegen::emit_cuda(kernel, schedule));
    if (source.launches.empty()) return Ok();
    overwritable_.clear();
    for (uint32_t i = 0; i < call.inputs.size(); ++i) {
      if (codegen::may_overwrite(kernel, schedule, i)) overwritable_.push_back(i);
    }
    KILN_ASSIGN_OR_RETURN(const codegen::Cubin cubin,
                          tools_.compiler->cache().compile(source.text));
    for (const codegen::CudaLaunch& each : source.launches) {
      if (each.blocks > std::numeric_limits<int32_t>::max()) {
        return Error{ErrorCode::kUnsupported, "its grid has " + std::to_string(each.blocks) +
                                                  " blocks, more than a launch can have"};
      }
      LocalLaunch launch;
      launch.cubin = cubin.bytes;
      launch.entry = each.entry;
      launch.grid[0] = static_cast<uint32_t>(each.blocks);
      launch.block[0] = each.threads;
      launch.programmatic = true;
      launch.inputs = call.inputs;
      launch.outputs = call.outputs;
      launch.workspace_bytes = source.workspace_bytes;
      steps.emplace_back(std::move(launch));
    }
    return Ok();
  }

  Result<codegen::CudaSchedule> schedule_of(const Operation& operation,
                                            const loop::LoopKernel& kernel) const {
    const std::string asked = operation.get_string(kScheduleAttribute, "");
    if (!asked.empty()) {
      const auto schedule = codegen::parse_cuda_schedule(asked);
      if (!schedule) return Error{ErrorCode::kInvalidArgument, "'" + asked + "' is no schedule"};
      return *schedule;
    }
    return codegen::cuda_schedules(kernel, {.multiprocessors = query_.device.multiprocessors})
        .front();
  }

  // Control flow counts the steps that belong to it.
  static void renumber(const std::vector<size_t>& first, std::vector<LocalStep>& steps) {
    for (size_t old = 0; old + 1 < first.size(); ++old) {
      if (first[old] == first[old + 1]) continue;  // a kernel without points left no step
      if (auto* branch = std::get_if<LocalBranch>(&steps[first[old]])) {
        const size_t middle = old + 1 + branch->then_steps, end = middle + branch->else_steps;
        branch->then_steps = static_cast<uint32_t>(first[middle] - first[old + 1]);
        branch->else_steps = static_cast<uint32_t>(first[end] - first[middle]);
      } else if (auto* repeat = std::get_if<LocalRepeat>(&steps[first[old]])) {
        const size_t end = old + 1 + repeat->body_steps;
        repeat->body_steps = static_cast<uint32_t>(first[end] - first[old + 1]);
      }
    }
  }

  const TacticQuery& query_;
  const CudaTools& tools_;
  Lowered& lowered_;
  std::vector<size_t> overwritable_;  // inputs of the latest loop that its output 0 may take over
};

}  // namespace

Result<> lower_device(const TacticQuery& query, Lowered& lowered) {
  return DeviceLowering(query, lowered).run();
}

}  // namespace kiln
