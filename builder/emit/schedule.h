// Schedule: the regions of one shape point in the order they run, each with its chosen lowering.
// Tactics makes it, emit places its buffers and turns it into plan steps.
#pragma once
#include <string>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/shape_point.h"
#include "builder/tactics/lowered.h"

namespace kiln {

struct ScheduledRegion {
  ir::NodeId node{};
  std::string name;
  bool alias = false;  // its output is its input's buffer under another shape: no steps
  Lowered lowered;     // finished
};

struct Schedule {
  ShapePoint point;
  ir::Graph graph;  // every node a Region
  std::vector<ScheduledRegion> regions;
};

// A region that only reshapes one value that is laid out the same before and after.
bool is_alias(const ir::Region& region);

}  // namespace kiln
