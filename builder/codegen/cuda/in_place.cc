#include "builder/codegen/cuda/in_place.h"

#include "formats/loop_ir/in_place.h"

namespace kiln::codegen {

// Tiles are read by other threads than those that write them, parts in launches of their own.
bool may_overwrite(const loop::LoopKernel& kernel, const CudaSchedule& schedule, uint32_t input) {
  const bool apart = schedule.family == Family::kTiles || schedule.family == Family::kSplit;
  return !apart && loop::may_overwrite(kernel, input);
}

}  // namespace kiln::codegen
