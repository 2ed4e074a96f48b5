#include "builder/tactics/lower_grouped.h"

#include <algorithm>
#include <set>

#include "builder/codegen/lower_loop.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

Operation loop_operation(const loop::LoopKernel& kernel) {
  return Operation{"loop", {}}.set("kernel", loop::encode(kernel));
}

// One group of loop operations that is being collected, and how it is flushed.
class Grouping {
 public:
  Grouping(const Graph& body, NodeLowering& lowering)
      : body_(body), lowering_(lowering), bindings_(lowering.bind_region(body)) {}

  Result<> run() {
    for (NodeId id : body_.topological_order()) {
      if (is_loop_op(body_.node(id).op)) {
        group_.push_back(id);
        continue;
      }
      KILN_RETURN_IF_ERROR(flush());
      KILN_RETURN_IF_ERROR(lowering_.lower_nodes(body_, std::span(&id, 1), bindings_));
    }
    KILN_RETURN_IF_ERROR(flush());
    lowering_.copy_outputs(body_, bindings_);
    return Ok();
  }

 private:
  // Values that the group makes and something else needs.
  std::vector<ValueId> results() const {
    const std::set<NodeId> members(group_.begin(), group_.end());
    std::vector<ValueId> values;
    for (NodeId id : group_) {
      for (ValueId value : body_.node(id).outputs) {
        const auto& uses = body_.value(value).uses;
        const bool outside = std::any_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
          return !members.contains(use.node);
        });
        if (outside || body_.is_output(value)) values.push_back(value);
      }
    }
    return values;
  }

  // The members that `value` is computed from.
  std::vector<NodeId> behind(ValueId value) const {
    const std::set<NodeId> members(group_.begin(), group_.end());
    std::set<NodeId> found;
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const NodeId producer = body_.value(open.back()).producer;
      open.pop_back();
      if (producer == ir::kNoNode || !members.contains(producer)) continue;
      if (!found.insert(producer).second) continue;
      const auto& inputs = body_.node(producer).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return {found.begin(), found.end()};
  }

  bool add_loop(const std::vector<NodeId>& nodes, std::span<const ValueId> outputs) {
    const ir::Extracted part = ir::extract(body_, nodes, outputs);
    const auto kernel = lower_to_loop(part.graph);
    if (!kernel.ok()) return false;
    HostCall call{loop_operation(*kernel), {}, {}};
    for (ValueId id : part.inputs) call.inputs.push_back(lowering_.buffer_of(body_, id, bindings_));
    for (ValueId id : outputs) call.outputs.push_back(lowering_.buffer_of(body_, id, bindings_));
    lowering_.add(std::move(call));
    return true;
  }

  Result<> flush() {
    if (group_.empty()) return Ok();
    const auto outputs = results();
    if (!add_loop(group_, outputs)) {
      for (ValueId output : outputs) {
        const auto nodes = behind(output);
        if (add_loop(nodes, std::span(&output, 1))) continue;
        KILN_RETURN_IF_ERROR(lowering_.lower_nodes(body_, in_order(nodes), bindings_));
      }
    }
    group_.clear();
    return Ok();
  }

  std::vector<NodeId> in_order(const std::vector<NodeId>& nodes) const {
    std::vector<NodeId> ordered;
    for (NodeId id : group_) {
      if (std::find(nodes.begin(), nodes.end(), id) != nodes.end()) ordered.push_back(id);
    }
    return ordered;
  }

  const Graph& body_;
  NodeLowering& lowering_;
  NodeLowering::Bindings bindings_;
  std::vector<NodeId> group_;
};

}  // namespace

bool is_loop_op(const ir::Op& op) {
  return std::holds_alternative<ir::Pointwise>(op) || std::holds_alternative<ir::Cast>(op) ||
         std::holds_alternative<ir::Reduce>(op) || std::holds_alternative<ir::Transpose>(op) ||
         std::holds_alternative<ir::Reshape>(op) || std::holds_alternative<ir::Broadcast>(op) ||
         std::holds_alternative<ir::Slice>(op) || std::holds_alternative<ir::Pad>(op) ||
         std::holds_alternative<ir::Concat>(op) || std::holds_alternative<ir::Gather>(op);
}

Result<Lowered> lower_grouped(const Graph& body, NodeLowering::Rename rename) {
  NodeLowering lowering(rename);
  KILN_RETURN_IF_ERROR(Grouping(body, lowering).run());
  return std::move(lowering).take();
}

Result<Lowered> lower_loop_region(const Graph& body) {
  KILN_ASSIGN_OR_RETURN(const auto kernel, lower_to_loop(body));
  HostCall call{loop_operation(kernel), {}, {}};
  for (uint32_t i = 0; i < body.inputs().size(); ++i) {
    call.inputs.push_back({LocalBuffer::Kind::kInput, i});
  }
  for (uint32_t i = 0; i < body.outputs().size(); ++i) {
    call.outputs.push_back({LocalBuffer::Kind::kOutput, i});
  }
  Lowered lowered;
  lowered.steps.emplace_back(std::move(call));
  return lowered;
}

}  // namespace kiln
