// How index maps move along a thread's lanes: the `count` neighbouring points of one dim, the first
// a multiple of `count`, that it handles together.
#pragma once
#include <vector>

#include "builder/codegen/cuda/kernel_facts.h"

namespace kiln::codegen {

struct Lanes {
  uint32_t dim = 0;
  uint32_t count = 1;   // divides the dim's extent
  bool stream = false;  // packs that are touched once pass the caches by
};

enum class Motion : uint8_t {
  kStill,      // the same element for all lanes
  kPacked,     // neighbouring elements, the first on a boundary of their size
  kScattered,  // anything else
};

// By expr. An access is a load's or store's map and bounds; others have the motion of their value,
// kStill or kScattered, but for a choice between packs that is the same for all lanes: kPacked. A
// kReduce over lanes yields one value.
std::vector<Motion> motions(const KernelFacts& facts, const Lanes& lanes);

}  // namespace kiln::codegen
