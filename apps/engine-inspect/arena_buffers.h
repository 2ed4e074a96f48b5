// Who occupies the arena when, found from the steps alone.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/engine_file/plan.h"

namespace kiln::inspect {

// Bytes [offset, offset + bytes) of the arena from the step that writes them to the last one that
// reads them.
struct ArenaBuffer {
  uint64_t offset = 0, bytes = 0;
  size_t first_step = 0, last_step = 0;
  bool workspace = false;
  friend bool operator==(const ArenaBuffer&, const ArenaBuffer&) = default;
};

// In the order in which they are first written. A value written before a repeat and read in it
// lives until the repeat's end.
std::vector<ArenaBuffer> arena_buffers(const plan::ShapePoint& point);

struct Occupancy {
  std::vector<uint64_t> live_bytes;  // at each step; bytes taken over in place count once
  size_t peak_step = 0;              // the first with the most
};
Occupancy occupancy(const std::vector<ArenaBuffer>& buffers, size_t steps);

}  // namespace kiln::inspect
