// Making regions: groups of nodes become one Region node whose body holds them.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "builder/ir/graph.h"

namespace kiln::fuse {

// A region that could be formed: nothing in the graph has changed yet.
struct RegionDraft {
  std::shared_ptr<const ir::Graph> body;
  std::vector<ir::ValueId> inputs, outputs;  // values of the graph; the body's, in order
  std::vector<ir::NodeId> members, copies;
};

// `members` and `copies` in one body, Region nodes among them opened up. What is read outside of
// the members becomes an output. Copies are nodes that members read and that stay in the graph:
// their results are computed again inside. Equal nodes of the body are merged.
// REQUIRES: no path leads from a member out of the group and back into it (fuse/cycle.h).
RegionDraft draft_region(const ir::Graph& graph, std::span<const ir::NodeId> members,
                         std::span<const ir::NodeId> copies = {});

// Puts the draft's region in place of its members; copies that nothing else reads go too.
ir::NodeId form_region(ir::Graph& graph, const RegionDraft& draft, ir::Region::Kind kind,
                       std::string rule);

// REQUIRES: the node is a Region.
inline const ir::Region& region_of(const ir::Graph& graph, ir::NodeId id) {
  return std::get<ir::Region>(graph.node(id).op);
}

// The kind of a region of that single operation.
ir::Region::Kind kind_of(const ir::Op& op);

// The one MatMul, Conv, ConvTranspose, Attention, opaque or plugin node of a region's body; kNoNode
// for loops.
ir::NodeId anchor_of(const ir::Graph& body);

}  // namespace kiln::fuse
