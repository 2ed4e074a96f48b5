#include "builder/codegen/cuda/in_place.h"

#include "formats/loop_ir/in_place.h"

namespace kiln::codegen {

// Tiles are read by other threads than those that write them, parts in launches of their own, and
// the blocks of a cluster may read of each other's row.
bool may_overwrite(const loop::LoopKernel& kernel, const CudaSchedule& schedule, uint32_t input) {
  const bool apart = schedule.family == Family::kTiles || schedule.family == Family::kSplit;
  const bool apart_in_cluster = schedule.group > schedule.threads;
  return !apart && !apart_in_cluster && loop::may_overwrite(kernel, input);
}

}  // namespace kiln::codegen
