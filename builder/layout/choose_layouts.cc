#include "builder/layout/choose_layouts.h"

#include <algorithm>
#include <map>
#include <set>

#include "builder/codegen/lower_loop.h"
#include "builder/fuse/region.h"
#include "builder/ir/match.h"
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

// Whether the value is made with channels last and then turned, but for casts.
bool is_turned(const Graph& body, ValueId value) {
  if (const auto* transpose = ir::producer_as<ir::Transpose>(body, value)) {
    return transpose->perm == kFromLast;
  }
  return ir::producer_as<ir::Cast>(body, value) && is_turned(body, ir::operand(body, value, 0));
}

// What `value` turns back after a turn; `value` itself if it does not.
ValueId without_turns(const Graph& body, ValueId value) {
  const auto* second = ir::producer_as<ir::Transpose>(body, value);
  if (!second || second->perm != kToLast) return value;
  const ValueId between = ir::operand(body, value, 0);
  const auto* first = ir::producer_as<ir::Transpose>(body, between);
  return first && first->perm == kFromLast ? ir::operand(body, between, 0) : value;
}

// `value` of a body with channels last: what was turned is not turned back.
Result<ValueId> with_channels_last(Graph& body, ValueId value) {
  ir::Op op = ir::Transpose{kToLast};
  if (is_turned(body, value)) {
    const ValueId below = ir::operand(body, value, 0);
    if (ir::producer_as<ir::Transpose>(body, value)) return below;
    op = *ir::producer_as<ir::Cast>(body, value);
    KILN_ASSIGN_OR_RETURN(value, with_channels_last(body, below));
    for (const ir::Use& use : body.value(value).uses) {
      if (body.node(use.node).op == op) return body.result(use.node);
    }
  }
  KILN_ASSIGN_OR_RETURN(const NodeId turned, body.add_node("to channels last", {}, op, {value}));
  return body.result(turned);
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
      const Region& reader = region_of(graph_, use.node);
      return is_seed(use.node) || (reader.kind != Kind::kConvolution && keeps_axes(*reader.body) &&
                                   std::any_of(outputs.begin(), outputs.end(),
                                               [&](ValueId output) { return last(output); }));
    });
  }

  void choose(NodeId id, bool backward) {
    const Region& region = region_of(graph_, id);
    const bool seed = is_seed(id);
    if (!seed && !reads_both(id)) return;
    const bool keeps = seed || keeps_axes(*region.body);
    const auto& outputs = graph_.node(id).outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!keeps && !(backward && is_turned(*region.body, region.body->outputs()[i]))) continue;
      const bool wanted = seed || (backward ? feeds_last(outputs[i]) : reads_last(id));
      if (wanted && is_candidate(outputs[i])) last_.insert(outputs[i]);
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
    const auto has_form = [&](const Graph& made) {
      return region.kind != Kind::kLoop || made.outputs().empty() || lower_to_loop(made).ok();
    };
    if (!body.ok() || !has_form(*body->body)) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        KILN_ASSIGN_OR_RETURN(inputs[i], stored(node.inputs[i], false));
      }
      body = rebuild(node, *region.body, inputs);
    }
    KILN_ASSIGN_OR_RETURN(Rebuilt made, std::move(body));
    changed.body = made.body;
    std::vector<TensorType> types;
    for (ValueId output : changed.body->outputs()) types.push_back(changed.body->type(output));
    // Without outputs all that it did was to turn what lies in the right order.
    std::vector<ValueId> results;
    if (!types.empty()) {
      results = graph_.node(graph_.add_typed_node(node.name, node.origins, changed, inputs, types))
                    .outputs;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Rebuilt::Place& place = made.outputs[i];
      const ValueId output = place.is_input ? inputs[place.at] : results[place.at];
      if (!place.is_input && !place.is_shared) {
        graph_.set_value_name(output, graph_.value(node.outputs[i]).name);
      }
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

  struct Rebuilt {
    struct Place {
      bool is_input = false;   // an input of the body, as it is; else one of its outputs
      bool is_shared = false;  // another output is the same
      size_t at = 0;
    };
    std::shared_ptr<const Graph> body;
    std::vector<Place> outputs;  // where each of the node's is
  };

  // The body for inputs as they are given and outputs as the layouts want them.
  Result<Rebuilt> rebuild(const ir::Node& node, const Graph& old,
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
    Rebuilt made;
    for (size_t i = 0; i < outputs.size(); ++i) {
      ValueId output = without_turns(*body, outputs[i]);
      const bool last = layouts_.last(node.outputs[i]);
      if (last) {
        KILN_ASSIGN_OR_RETURN(output, with_channels_last(*body, output));
      }
      made.outputs.push_back(place(*body, output, last || output != outputs[i]));
    }
    remove_unused(*body);
    made.body = std::move(body);
    return made;
  }

  // Marks the value as an output unless that is there. An input stands for itself if `may_pass`.
  static Rebuilt::Place place(Graph& body, ValueId value, bool may_pass) {
    const auto at = [&](std::span<const ValueId> values) {
      return static_cast<size_t>(std::find(values.begin(), values.end(), value) - values.begin());
    };
    if (may_pass && at(body.inputs()) < body.inputs().size()) {
      return {.is_input = true, .at = at(body.inputs())};
    }
    const bool shared = at(body.outputs()) < body.outputs().size();
    if (!shared) body.mark_output(value);
    return {.is_shared = shared, .at = at(body.outputs())};
  }

  static void remove_unused(Graph& body) {
    auto order = body.topological_order();
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      const auto& outputs = body.node(*id).outputs;
      if (std::all_of(outputs.begin(), outputs.end(),
                      [&](ValueId output) { return ir::unused(body, output); })) {
        body.erase(*id);
      }
    }
    body.compact();
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
