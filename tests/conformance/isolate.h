// Runs a case in a process of its own, so that a crash, a hang or a leak stays there.
#pragma once
#include <functional>

#include "tests/conformance/outcome.h"

namespace kiln::conformance {

// Forks; the child's outcome comes back through a pipe. A signal or an early exit is kCrashed, as
// is running longer than the limit. Not to be called while other threads run.
Outcome run_isolated(const std::function<Outcome()>& body, double limit_seconds);

}  // namespace kiln::conformance
