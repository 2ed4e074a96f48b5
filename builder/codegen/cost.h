// What a loop kernel moves and computes: the key of the fusion queue and lines of the report.
#pragma once
#include <cstdint>

#include "formats/loop_ir/loop_kernel.h"

namespace kiln {

struct LoopCost {
  int64_t bytes_read = 0;  // each input element that some load reaches, once
  int64_t bytes_written = 0;
  int64_t scalar_ops = 0;  // additions and their like; dearer functions count as several
};

// REQUIRES: loop::verify(kernel) was ok.
LoopCost cost_of(const loop::LoopKernel& kernel);

// A model of one host core: fixed start, memory and arithmetic overlap.
double host_us(const LoopCost& cost);

}  // namespace kiln
