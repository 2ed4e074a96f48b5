#include "builder/layout/choose_layouts.h"

#include <algorithm>
#include <map>
#include <set>

#include "builder/codegen/lower_loop.h"
#include "builder/fuse/region.h"
#include "builder/verify/reference.h"

namespace kiln::layout {
namespace {

using fuse::region_of;
using ir::Graph;
using ir::NodeId;
using ir::Region;
using ir::ValueId;
using Kind = Region::Kind;

const std::vector<int64_t> kToLast = {0, 2, 3, 1};    // from N, C, H, W
const std::vector<int64_t> kFromLast = {0, 3, 1, 2};  // to N, C, H, W

TensorType channels_last(const TensorType& type) {
  return {type.dtype, {type.shape[0], type.shape[2], type.shape[3], type.shape[1]}};
}

bool is_conv(const ir::Op& op) {
  return std::holds_alternative<ir::Conv>(op) || std::holds_alternative<ir::ConvTranspose>(op);
}

// Single-result operations on N, C, H, W that become loops, whatever the order is.
bool is_pool_or_resize(const Graph& body) {
  const NodeId anchor = fuse::anchor_of(body);
  if (anchor == ir::kNoNode || body.outputs().size() != 1) return false;
  const auto* opaque = std::get_if<ir::Opaque>(&body.node(anchor).op);
  if (!opaque || body.node(anchor).outputs.size() != 1) return false;
  const std::string& name = opaque->operation.name;
  return name == "max_pool" || name == "average_pool" || name == "resize";
}

// Every axis of what it reads is the same axis of what it writes.
bool keeps_axes(const Graph& body) {
  const auto order = body.topological_order();
  return std::none_of(order.begin(), order.end(), [&](NodeId id) {
    const ir::Op& op = body.node(id).op;
    return std::holds_alternative<ir::Reshape>(op) || std::holds_alternative<ir::Transpose>(op) ||
           std::holds_alternative<ir::Gather>(op);
  });
}

// Which values are stored with channels last.
class Layouts {
 public:
  explicit Layouts(const Graph& graph) : graph_(graph), order_(graph.topological_order()) {
    for (NodeId id : order_) choose(id, false);
    // What a convolution reads follows it, back to where it was made.
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) choose(*id, true);
  }

  bool last(ValueId id) const { return last_.count(id) > 0; }
  bool any() const { return !last_.empty(); }

  // A narrow convolution of rank 4.
  bool is_seed(NodeId id) const {
    const Region& region = region_of(graph_, id);
    if (region.kind != Kind::kConvolution) return false;
    const ir::Node& anchor = region.body->node(fuse::anchor_of(*region.body));
    const TensorType& x = region.body->type(anchor.inputs[0]);
    return is_conv(anchor.op) && x.rank() == 4 &&
           (x.dtype == DType::kF16 || x.dtype == DType::kBF16);
  }

  // Whether it can read values that are stored either way.
  bool reads_both(NodeId id) const {
    const Region& region = region_of(graph_, id);
    return region.kind == Kind::kLoop || is_seed(id) || is_pool_or_resize(*region.body);
  }

 private:
  bool is_candidate(ValueId id) const {
    const ir::Value& value = graph_.value(id);
    return value.type.rank() == 4 && !value.constant && !graph_.is_output(id) &&
           std::all_of(value.uses.begin(), value.uses.end(),
                       [&](const ir::Use& use) { return reads_both(use.node); });
  }

  bool reads_last(NodeId id) const {
    const auto& inputs = graph_.node(id).inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) { return last(input); });
  }

  bool feeds_last(ValueId id) const {
    const auto& uses = graph_.value(id).uses;
    return std::any_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
      const auto& outputs = graph_.node(use.node).outputs;
      return is_seed(use.node) || (region_of(graph_, use.node).kind != Kind::kConvolution &&
                                   std::any_of(outputs.begin(), outputs.end(),
                                               [&](ValueId output) { return last(output); }));
    });
  }

  void choose(NodeId id, bool backward) {
    const Region& region = region_of(graph_, id);
    const bool seed = is_seed(id);
    if (!seed && !(reads_both(id) && keeps_axes(*region.body))) return;
    for (ValueId output : graph_.node(id).outputs) {
      const bool wanted = seed || (backward ? feeds_last(output) : reads_last(id));
      if (wanted && is_candidate(output)) last_.insert(output);
    }
  }

  const Graph& graph_;
  std::vector<NodeId> order_;
  std::set<ValueId> last_;
};

// Rewrites the graph's regions, producers first.
class Rewriter {
 public:
  Rewriter(Graph& graph, const Layouts& layouts) : graph_(graph), layouts_(layouts) {}

  Result<> run() {
    for (NodeId id : graph_.topological_order()) {
      const ir::Node& node = graph_.node(id);
      const bool involved = layouts_.is_seed(id) ||
                            std::any_of(node.inputs.begin(), node.inputs.end(),
                                        [&](ValueId v) { return layouts_.last(v); }) ||
                            std::any_of(node.outputs.begin(), node.outputs.end(),
                                        [&](ValueId v) { return layouts_.last(v); });
      if (involved) KILN_RETURN_IF_ERROR(rewrite(id));
    }
    // Consumers first, so that each is unread when it goes.
    for (auto id = replaced_.rbegin(); id != replaced_.rend(); ++id) graph_.erase(*id);
    return Ok();
  }

 private:
  Result<> rewrite(NodeId id) {
    const ir::Node node = graph_.node(id);
    const auto& region = std::get<Region>(node.op);
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      KILN_ASSIGN_OR_RETURN(const ValueId input, stored(node.inputs[i], wants_last(id, i)));
      inputs.push_back(input);
    }
    Region changed = region;
    auto body = rebuild(node, *region.body, inputs);
    const bool loop = region.kind == Kind::kLoop;
    if (!body.ok() || (loop && !lower_to_loop(**body).ok())) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        KILN_ASSIGN_OR_RETURN(inputs[i], stored(node.inputs[i], false));
      }
      body = rebuild(node, *region.body, inputs);
    }
    KILN_ASSIGN_OR_RETURN(changed.body, std::move(body));
    std::vector<TensorType> types;
    for (ValueId output : changed.body->outputs()) types.push_back(changed.body->type(output));
    const NodeId copy = graph_.add_typed_node(node.name, node.origins, changed, inputs, types);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = graph_.node(copy).outputs[i];
      graph_.set_value_name(output, graph_.value(node.outputs[i]).name);
      if (layouts_.last(node.outputs[i])) {
        last_[node.outputs[i]] = output;
      } else {
        graph_.replace_uses(node.outputs[i], output);
      }
    }
    replaced_.push_back(id);
    return Ok();
  }

  // Convolutions read activations and weights with channels last, others what there is.
  bool wants_last(NodeId id, size_t slot) const {
    const ValueId input = graph_.node(id).inputs[slot];
    if (graph_.type(input).rank() != 4) return false;
    if (!layouts_.is_seed(id)) return layouts_.last(input);
    const Graph& body = *region_of(graph_, id).body;
    const ir::Node& anchor = body.node(fuse::anchor_of(body));
    const bool operand =
        body.inputs()[slot] == anchor.inputs[0] || body.inputs()[slot] == anchor.inputs[1];
    return operand || layouts_.last(input) ||
           body.type(body.inputs()[slot]).shape == body.type(anchor.outputs[0]).shape;
  }

  // The value as it is stored now, in the order asked for; made once where it is not there.
  Result<ValueId> stored(ValueId value, bool last) {
    const ValueId as_is = layouts_.last(value) ? last_.at(value) : value;
    if (layouts_.last(value) == last) return as_is;
    const auto converted = converted_.find(value);
    if (converted != converted_.end()) return converted->second;
    KILN_ASSIGN_OR_RETURN(const ValueId made, convert(as_is, last));
    converted_[value] = made;
    return made;
  }

  Result<ValueId> convert(ValueId value, bool last) {
    const ir::Transpose transpose{last ? kToLast : kFromLast};
    const ir::Value source = graph_.value(value);
    if (source.constant) {
      const HostTensor tensor{source.type, *source.constant};
      const TensorType type = channels_last(source.type);
      KILN_ASSIGN_OR_RETURN(const auto turned, run_reference_op(transpose, std::span(&tensor, 1),
                                                                std::span(&type, 1)));
      return graph_.add_constant(source.name, type, turned[0].bytes);
    }
    auto body = std::make_shared<Graph>();
    const ValueId input = body->add_input(source.name, source.type);
    KILN_ASSIGN_OR_RETURN(const NodeId node, body->add_node("transpose", {}, transpose, {input}));
    body->mark_output(body->result(node));
    const TensorType type = body->type(body->result(node));
    const std::string name = source.name + (last ? " (channels last)" : " (channels second)");
    const NodeId id = graph_.add_typed_node(
        name, {}, Region{Kind::kLoop, body, {}, "choose-layouts"}, {value}, std::span(&type, 1));
    graph_.set_value_name(graph_.result(id), name);
    return graph_.result(id);
  }

  // The body for inputs as they are given and outputs as the layouts want them.
  Result<std::shared_ptr<const Graph>> rebuild(const ir::Node& node, const Graph& old,
                                               const std::vector<ValueId>& inputs) const {
    auto body = std::make_shared<Graph>();
    std::vector<ValueId> arguments;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorType& type = graph_.type(inputs[i]);
      ValueId argument = body->add_input(old.value(old.inputs()[i]).name, type);
      if (given_last(node.inputs[i], inputs[i])) {
        KILN_ASSIGN_OR_RETURN(
            const NodeId turned,
            body->add_node("from channels last", {}, ir::Transpose{kFromLast}, {argument}));
        argument = body->result(turned);
      }
      arguments.push_back(argument);
    }
    const auto outputs = ir::inline_graph(*body, old, arguments);
    for (size_t i = 0; i < outputs.size(); ++i) {
      ValueId output = outputs[i];
      if (layouts_.last(node.outputs[i])) {
        KILN_ASSIGN_OR_RETURN(
            const NodeId turned,
            body->add_node("to channels last", {}, ir::Transpose{kToLast}, {output}));
        output = body->result(turned);
      }
      body->mark_output(output);
    }
    return std::shared_ptr<const Graph>(body);
  }

  // Extents can be equal in both orders, so types do not tell.
  bool given_last(ValueId original, ValueId given) const {
    if (layouts_.last(original)) return given == last_.at(original);
    const auto converted = converted_.find(original);
    return converted != converted_.end() && given == converted->second;
  }

  Graph& graph_;
  const Layouts& layouts_;
  std::map<ValueId, ValueId> last_, converted_;  // by the value as it was
  std::vector<NodeId> replaced_;
};

}  // namespace

Result<bool> choose_layouts(Graph& graph, PassContext& context) {
  if (!context.options.library_layouts) return false;
  const Layouts layouts(graph);
  if (!layouts.any()) return false;
  Rewriter rewriter(graph, layouts);
  KILN_RETURN_IF_ERROR(rewriter.run());
  return true;
}

}  // namespace kiln::layout
