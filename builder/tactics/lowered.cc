#include "builder/tactics/lowered.h"

#include <algorithm>

namespace kiln {

uint64_t workspace_bytes(const LocalStep& step) {
  return std::visit(
      [](const auto& action) -> uint64_t {
        if constexpr (requires { action.workspace_bytes; }) return action.workspace_bytes;
        return 0;
      },
      step);
}

bool uses_tf32(const Lowered& lowered) {
  return std::any_of(lowered.steps.begin(), lowered.steps.end(), [](const LocalStep& step) {
    const auto* call = std::get_if<LibraryCall>(&step);
    return call != nullptr && call->tf32;
  });
}

uint64_t largest_workspace(const Lowered& lowered) {
  uint64_t most = 0;
  for (const LocalStep& step : lowered.steps) most = std::max(most, workspace_bytes(step));
  return most;
}

}  // namespace kiln
