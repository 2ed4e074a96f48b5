// Places buffers with known lifetimes in one arena. A pure function.
//
// Greedy best fit over several orders, the smallest result kept, then random re-insertion while it
// is above the lower bound (offset calculation by size: Pisarchyk and Lee, arXiv 2001.03288).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kiln {

// A buffer that must exist from step `first` to step `last`, both included.
struct Lifetime {
  uint64_t bytes = 0;
  int64_t first = 0, last = 0;
  // The buffer whose bytes this one takes over: its last step is this one's first, and it is at
  // least as large. The index is smaller than this buffer's own.
  std::optional<size_t> in_place_of;
};

struct Placement {
  std::vector<uint64_t> offsets;  // one a lifetime, multiples of kArenaAlignment
  uint64_t arena_bytes = 0;
  uint64_t lower_bound_bytes = 0;  // the most bytes alive at any one step: no plan can be smaller
};

inline constexpr uint64_t kArenaAlignment = 256;

// Deterministic. Buffers of 0 bytes get offset 0.
Placement plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace kiln
