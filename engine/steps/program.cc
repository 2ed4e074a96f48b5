#include "engine/steps/program.h"

#include <string>

#include "engine/steps/control_flow.h"
#include "engine/steps/copy.h"

namespace kiln {
namespace {

template <class Action>
Result<PreparedStep> prepare(const Action& action, const StepResources& resources) {
  if constexpr (plan::kRunsOnDevice<Action>) {
    return Error{ErrorCode::kInternal, "is a step of target cuda"};
  } else if constexpr (requires { prepare_step(action, resources); }) {
    auto prepared = prepare_step(action, resources);
    if (!prepared) return std::move(prepared).error();
    return PreparedStep(*std::move(prepared));
  } else {
    return PreparedStep(&action);
  }
}

size_t nested_steps(const PreparedStep& step) {
  if (const auto* branch = std::get_if<const plan::Branch*>(&step)) {
    return size_t{(*branch)->then_steps} + (*branch)->else_steps;
  }
  if (const auto* repeat = std::get_if<const plan::Repeat*>(&step)) return (*repeat)->body_steps;
  return 0;
}

class Run {
 public:
  Run(const Program& program, const Spaces& spaces, CallAddresses& addresses, Stream stream)
      : program_(program), spaces_(spaces), addresses_(addresses), stream_(stream) {}

  Result<> run_span(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i += 1 + nested_steps(program_.steps[i])) {
      KILN_RETURN_IF_ERROR(
          std::visit([&](const auto& step) { return run(step, i); }, program_.steps[i]));
    }
    return Ok();
  }

 private:
  Result<> run(const PreparedHostOperation& step, size_t i) {
    return named(run_step(step, spaces_, addresses_), i);
  }
  Result<> run(const PreparedPluginCall& step, size_t i) {
    return named(run_step(step, spaces_, addresses_, stream_), i);
  }
  Result<> run(const plan::Copy* step, size_t) {
    run_step(*step, spaces_);
    return Ok();
  }
  // Branch and repeat: their nested steps name themselves.
  template <class ControlFlow>
  Result<> run(const ControlFlow* step, size_t i) {
    return run_step(*step, i + 1, spaces_,
                    [this](size_t first, size_t count) { return run_span(first, count); });
  }

  Result<> named(Result<> ran, size_t i) const {
    if (ran) return ran;
    const plan::ShapePoint& point = *program_.point;
    return std::move(ran).error().context("point '" + point.name + "': '" +
                                          point.region_names[point.steps[i].region] + "'");
  }

  const Program& program_;
  const Spaces& spaces_;
  CallAddresses& addresses_;
  Stream stream_;
};

}  // namespace

Result<Program> prepare_program(const plan::ShapePoint& point, const StepResources& resources) {
  Program program{.point = &point, .steps = {}};
  program.steps.reserve(point.steps.size());
  for (const plan::Step& step : point.steps) {
    auto prepared =
        std::visit([&](const auto& action) { return prepare(action, resources); }, step.action);
    if (!prepared) {
      return std::move(prepared).error().context("point '" + point.name + "': step " +
                                                 std::to_string(program.steps.size()) + " ('" +
                                                 point.region_names[step.region] + "')");
    }
    program.steps.push_back(*std::move(prepared));
  }
  return program;
}

Result<> run_program(const Program& program, const Spaces& spaces, CallAddresses& addresses,
                     Stream stream) {
  return Run(program, spaces, addresses, stream).run_span(0, program.steps.size());
}

}  // namespace kiln
