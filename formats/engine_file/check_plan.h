// The rules of a plan that types cannot express: every id, range and span means something.
#pragma once
#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln::plan {

inline constexpr uint64_t kConstantAlignment = 64;   // of a constant within the weights
inline constexpr uint64_t kWorkspaceAlignment = 64;  // of a workspace within the arena
inline constexpr int64_t kMostElements = int64_t{1} << 48;
inline constexpr uint64_t kMostArenaBytes = uint64_t{1} << 48;
inline constexpr size_t kMostRank = 32;
inline constexpr size_t kMostNesting = 64;  // of branches and repeats

// A plan that passes can be run without a further look at any number in it: every buffer lies
// within its space, is aligned to its element and has its type's size; every span nests.
// kCorruptData names the point, the step with its region, the field, found and expected.
Result<> check_plan(const Plan& plan);

// Both lie in one space and share bytes. REQUIRES: offset + bytes of neither overflows, as in a
// plan that passes.
bool overlap(const BufferRef& a, const BufferRef& b);

}  // namespace kiln::plan
