// Step kinds: branch and repeat. They read their conditions on the host.
#pragma once
#include <functional>

#include "engine/steps/spaces.h"
#include "formats/result.h"

namespace kiln {

// Runs `count` steps from number `first` on.
using RunSpan = std::function<Result<>(size_t first, size_t count)>;

// `first` is the number of the step after the branch.
Result<> run_step(const plan::Branch& step, size_t first, const Spaces& spaces,
                  const RunSpan& run_span);

// The trip count is read once, the condition before each round. Without a trip count only the
// condition ends it: a body that never clears it never ends.
Result<> run_step(const plan::Repeat& step, size_t first, const Spaces& spaces,
                  const RunSpan& run_span);

}  // namespace kiln
