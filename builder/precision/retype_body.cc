#include "builder/precision/retype_body.h"

#include <algorithm>
#include <map>

#include "builder/fuse/region.h"

namespace kiln::precision {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

bool moves_only(const ir::Op& op) {
  return std::holds_alternative<ir::Reshape>(op) || std::holds_alternative<ir::Transpose>(op) ||
         std::holds_alternative<ir::Broadcast>(op) || std::holds_alternative<ir::Slice>(op) ||
         std::holds_alternative<ir::Concat>(op) || std::holds_alternative<ir::Gather>(op) ||
         std::holds_alternative<ir::Pad>(op);
}

// How many operands of the anchor share its dtype: all but a mask, which stays in f32, and the
// parameters of an opaque operation.
size_t narrow_operands(const ir::Node& anchor) {
  if (std::holds_alternative<ir::Opaque>(anchor.op)) return 1;
  return std::holds_alternative<ir::Attention>(anchor.op) ? 3 : anchor.inputs.size();
}

class Retyper {
 public:
  Retyper(const Graph& body, const Borders& borders)
      : body_(body), borders_(borders), result_(std::make_shared<Graph>()) {}

  Result<std::shared_ptr<const Graph>> run() {
    for (size_t i = 0; i < body_.inputs().size(); ++i) {
      const ir::Value& input = body_.value(body_.inputs()[i]);
      map_[body_.inputs()[i]] =
          result_->add_input(input.name, {borders_.inputs[i], input.type.shape});
    }
    const bool as_is = moves_one_dtype();
    for (NodeId id : body_.topological_order()) KILN_RETURN_IF_ERROR(copy(id, as_is));
    for (size_t i = 0; i < body_.outputs().size(); ++i) {
      KILN_ASSIGN_OR_RETURN(const ValueId output,
                            in_dtype(body_.outputs()[i], borders_.outputs[i]));
      result_->mark_output(output);
    }
    return std::shared_ptr<const Graph>(result_);
  }

 private:
  // Nothing but movement, and one dtype at all borders: no conversion is needed inside.
  bool moves_one_dtype() const {
    for (NodeId id : body_.topological_order()) {
      if (!moves_only(body_.node(id).op)) return false;
    }
    const auto is_f32 = [&](ValueId id) { return body_.type(id).dtype == DType::kF32; };
    for (size_t i = 0; i < body_.inputs().size(); ++i) {
      if (is_f32(body_.inputs()[i]) && borders_.inputs[i] != borders_.outputs[0]) return false;
    }
    return std::all_of(borders_.outputs.begin(), borders_.outputs.end(),
                       [&](DType dtype) { return dtype == borders_.outputs[0]; });
  }

  // The value in `dtype`; values that were not f32 keep theirs.
  Result<ValueId> in_dtype(ValueId id, DType dtype) {
    if (!map_.count(id)) {
      const ir::Value& constant = body_.value(id);
      map_[id] = result_->add_constant(constant.name, constant.type, *constant.constant);
    }
    const ValueId mapped = map_[id];
    if (body_.type(id).dtype != DType::kF32 || result_->type(mapped).dtype == dtype) return mapped;
    const auto known = converted_.find({id, dtype});
    if (known != converted_.end()) return known->second;
    KILN_ASSIGN_OR_RETURN(const NodeId cast,
                          result_->add_node("cast", {}, ir::Cast{dtype, true}, {mapped}));
    return converted_[{id, dtype}] = result_->result(cast);
  }

  Result<> copy(NodeId id, bool as_is) {
    const ir::Node& node = body_.node(id);
    const bool anchor = fuse::kind_of(node.op) != ir::Region::Kind::kLoop;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const DType elsewhere = as_is ? borders_.outputs[0] : DType::kF32;
      const bool narrow = anchor && i < narrow_operands(node);
      KILN_ASSIGN_OR_RETURN(const ValueId input,
                            in_dtype(node.inputs[i], narrow ? borders_.anchor : elsewhere));
      inputs.push_back(input);
    }
    NodeId copied;
    if (std::holds_alternative<ir::PluginCall>(node.op)) {
      std::vector<TensorType> types;
      for (ValueId output : node.outputs) types.push_back(body_.type(output));
      copied = result_->add_typed_node(node.name, node.origins, node.op, inputs, types);
    } else {
      KILN_ASSIGN_OR_RETURN(copied,
                            result_->add_node(node.name, node.origins, node.op, std::move(inputs)));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      map_[node.outputs[i]] = result_->node(copied).outputs[i];
      result_->set_value_name(map_[node.outputs[i]], body_.value(node.outputs[i]).name);
    }
    return Ok();
  }

  const Graph& body_;
  const Borders& borders_;
  std::shared_ptr<Graph> result_;
  std::map<ValueId, ValueId> map_;
  std::map<std::pair<ValueId, DType>, ValueId> converted_;
};

}  // namespace

Result<std::shared_ptr<const Graph>> retype_body(const Graph& body, const Borders& borders) {
  return Retyper(body, borders).run();
}

std::vector<bool> anchor_operands(const Graph& body) {
  std::vector<bool> operands(body.inputs().size(), false);
  const NodeId anchor = fuse::anchor_of(body);
  if (anchor == ir::kNoNode) return operands;
  const ir::Node& node = body.node(anchor);
  const auto end = node.inputs.begin() + static_cast<ptrdiff_t>(narrow_operands(node));
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    operands[i] = std::find(node.inputs.begin(), end, body.inputs()[i]) != end;
  }
  return operands;
}

}  // namespace kiln::precision
