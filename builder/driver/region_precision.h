// What a region was to be computed in, what it is, and why that differs.
#pragma once
#include <span>

#include "builder/emit/schedule.h"
#include "builder/pipeline/pass.h"
#include "formats/report/report.h"

namespace kiln {

struct PrecisionWish {
  Precision precision = Precision::kFp32;             // of the build
  bool on_gpu = false;                                // target cuda
  std::span<const PrecisionDecision> decisions = {};  // of the passes, by region
};

// Fills in the record's precision_ fields. "tf32" was asked for where f32 operands are multiplied,
// and is realised where the chosen tactic's library call may round them.
void describe_precision(const ir::Graph& graph, const ScheduledRegion& region,
                        const PrecisionWish& wish, report::Region& record);

}  // namespace kiln
