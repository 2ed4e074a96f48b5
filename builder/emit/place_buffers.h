// Decides where every value of a schedule lives: the caller's tensors, the weights or the arena.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "builder/emit/constant_pool.h"
#include "builder/emit/schedule.h"
#include "formats/report/report.h"

namespace kiln {

struct PlacedRegion {
  std::vector<plan::BufferRef> inputs, outputs, temporaries, constants;
  plan::BufferRef workspace;  // the largest of its steps'
};

struct Placed {
  std::vector<PlacedRegion> regions;     // as Schedule::regions; empty for aliases
  std::vector<plan::Copy> final_copies;  // outputs that no region writes directly
  report::Memory memory;
};

// Values that are graph outputs are computed in the caller's tensor where one region makes them.
// On each side of a buffer in the arena `apart_bytes` are left, a multiple of its alignment.
Placed place_buffers(const Schedule& schedule, ConstantPool& constants, uint64_t apart_bytes = 0);

}  // namespace kiln
