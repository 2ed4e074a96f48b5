// How well a region uses the GPU, or why it does not.
#pragma once
#include "builder/emit/schedule.h"
#include "formats/report/report.h"

namespace kiln {

// Fills in roofline_share and roofline_bound from the record's bytes, flops and chosen candidate.
// Products count at the rate of their operands' type, all else as f32.
void describe_roofline(const ir::Region& region, const Lowered& lowered,
                       const report::PeakRates& rates, report::Region& record);

// For regions of target cuda: fills in host_reason where a step of the lowering runs on the host.
void describe_host_steps(const ir::Region& region, const Lowered& lowered, report::Region& record);

}  // namespace kiln
