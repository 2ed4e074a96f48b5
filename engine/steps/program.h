// Program: the steps of one shape point, made ready to run.
#pragma once
#include <variant>
#include <vector>

#include "engine/steps/host_operation.h"
#include "engine/steps/plugin_call.h"

namespace kiln {

// Steps that need no preparation are views of the plan's.
using PreparedStep = std::variant<PreparedHostOperation, PreparedPluginCall, const plan::Copy*,
                                  const plan::Branch*, const plan::Repeat*>;

// Immutable; run by many threads at once, each with its own spaces.
struct Program {
  const plan::ShapePoint* point = nullptr;
  std::vector<PreparedStep> steps;  // as point->steps
};

// The plan and everything else in `resources` must outlive the program. Errors name step and
// region.
Result<Program> prepare_program(const plan::ShapePoint& point, const StepResources& resources);

Result<> run_program(const Program& program, const Spaces& spaces, CallAddresses& addresses,
                     Stream stream);

}  // namespace kiln
