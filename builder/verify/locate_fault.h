// Finds the region that makes a finished engine wrong.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "builder/emit/schedule.h"
#include "builder/tactics/select_tactics.h"
#include "builder/verify/reference.h"
#include "engine/engine.h"

namespace kiln {

struct Fault {
  std::optional<size_t> region;  // number in the schedule; none: see `what`
  std::string what;              // one line
};

// Runs the schedule once more with every region's outputs kept, on the inputs that went wrong, and
// names the first region that differs from its own body. If none does, the passes changed the
// model's meaning (the graph of regions differs from `want`), or buffers overlap.
// `want` are the imported graph's outputs for these inputs.
Result<Fault> locate_fault(const Schedule& schedule, std::span<const HostTensor> inputs,
                           std::span<const HostTensor> want, const LoadOptions& options,
                           const ReferenceOptions& reference);

}  // namespace kiln
