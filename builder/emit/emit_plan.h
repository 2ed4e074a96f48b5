// Emit: schedules in, an engine file's plan out.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "builder/emit/constant_pool.h"
#include "builder/emit/schedule.h"
#include "formats/engine_file/plan.h"
#include "formats/report/report.h"

namespace kiln {

// Collects shape points one at a time, so that a schedule can be dropped once it is emitted.
class PlanBuilder {
 public:
  // Buffers in the arena lie `apart_bytes` from its ends and twice that from each other.
  explicit PlanBuilder(uint64_t apart_bytes = 0) : apart_bytes_(apart_bytes) {}

  // All points have the same inputs and outputs by name, in one order. Returns the point's memory.
  report::Memory add_point(const Schedule& schedule);

  // The rest of the plan: `origin` and batch padding are the caller's to fill in.
  plan::Plan finish() &&;
  uint64_t weights_bytes() const { return constants_.bytes(); }

 private:
  uint32_t plugin_number(const std::string& name, const std::string& version);
  void add_steps(const ScheduledRegion& region, uint32_t number, const ir::Graph& graph,
                 const struct PlacedRegion& placed, std::vector<plan::Step>& steps);

  uint64_t apart_bytes_;
  plan::Plan plan_;
  ConstantPool constants_;
  BlobPool blobs_;
};

}  // namespace kiln
