#include "builder/tactics/cuda/attention_operands.h"

#include <set>

#include "builder/fuse/region.h"

namespace kiln {
namespace {

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

// Extents of 1 in front, up to rank 4.
void widen(StridedView& view) {
  while (view.dims.size() < 4) {
    view.strides.insert(view.strides.begin(),
                        view.dims.empty() ? 1 : view.strides[0] * view.dims[0]);
    view.dims.insert(view.dims.begin(), 1);
  }
}

}  // namespace

Result<AttentionOperands> attention_operands(const ir::Graph& body) {
  AttentionOperands found;
  found.anchor = fuse::anchor_of(body);
  if (found.anchor != ir::kNoNode)
    found.op = std::get_if<ir::Attention>(&body.node(found.anchor).op);
  if (found.op == nullptr || body.outputs().size() != 1)
    return refuse("the region is no attention");
  const ir::Node& node = body.node(found.anchor);
  std::vector<ir::NodeId> passed = {found.anchor};
  KILN_ASSIGN_OR_RETURN(found.q, view_of_input(body, node.inputs[0], passed));
  KILN_ASSIGN_OR_RETURN(found.k, view_of_input(body, node.inputs[1], passed));
  KILN_ASSIGN_OR_RETURN(found.v, view_of_input(body, node.inputs[2], passed));
  if (node.inputs.size() > 3) {
    KILN_ASSIGN_OR_RETURN(found.mask, repeated_view_of_input(body, node.inputs[3], passed));
    widen(*found.mask);
  }
  KILN_ASSIGN_OR_RETURN(found.y, view_in_output(body, node.outputs[0], passed));
  const std::set<ir::NodeId> seen(passed.begin(), passed.end());
  if (seen.size() != body.topological_order().size()) {
    return refuse("the region computes more than attention");
  }
  return found;
}

}  // namespace kiln
