// From a graph of regions to a schedule: each region with its tactic, in the order they run.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "builder/emit/schedule.h"
#include "builder/tactics/select_tactics.h"

namespace kiln {

struct Scheduled {
  Schedule schedule;
  std::vector<report::Region> records;  // as schedule.regions
  std::vector<TacticKey> winners;       // empty for aliases
  // Regions that the timing cache does not know and nothing here can measure: the rest is of no
  // use.
  std::vector<std::string> missing;
  std::vector<std::string> notes;  // regions taken apart, and why
};

// Called with the share of regions done, 0 to 1.
using SchedulingProgress = std::function<void(double)>;

// A region that no tactic gets right is taken apart into regions of one operation each; one of a
// single operation is a kVerification error that names its ONNX nodes.
// REQUIRES: every node of the graph is a Region.
Result<Scheduled> schedule_regions(ir::Graph graph, const ShapePoint& point,
                                   const DeviceInfo& device, std::span<const Plugin> plugins,
                                   SelectionContext& context, const SchedulingProgress& progress);

// "conv_1 + relu_1", shortened to three names.
std::string region_name(const ir::Region& region, const std::string& fallback);

// Everything a provider may know about a region's node.
TacticQuery query_of(const ir::Graph& graph, ir::NodeId node, const DeviceInfo& device,
                     std::span<const Plugin> plugins);

}  // namespace kiln
