#include "builder/tactics/epilogue_chain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

namespace kiln {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;
using Kind = ChainStep::Kind;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

std::optional<float> scalar_of(const Graph& body, ValueId id) {
  const ir::Value& value = body.value(id);
  if (!value.constant || value.type.dtype != DType::kF32 || value.type.elements() != 1) {
    return std::nullopt;
  }
  float number = 0;
  std::memcpy(&number, value.constant->data(), sizeof number);
  return number;
}

bool is_near(std::optional<float> value, double wanted) {
  return value && std::abs(*value - wanted) < 1e-6 * std::abs(wanted);
}

bool is_float_cast(const Graph& body, const ir::Node& node) {
  return std::holds_alternative<ir::Cast>(node.op) && is_float(body.type(node.inputs[0]).dtype) &&
         is_float(body.type(node.outputs[0]).dtype);
}

// Walks from the anchor's result to the body's output, one step at a time.
class Walk {
 public:
  Walk(const Graph& body, NodeId anchor) : body_(body), at_(body.result(anchor)) {
    matmul_ = std::holds_alternative<ir::MatMul>(body.node(anchor).op);
    chain_.anchor = anchor;
    seen_.insert(anchor);
  }

  Result<EpilogueChain> stop_at_anchor() {
    KILN_RETURN_IF_ERROR(take_operands());
    chain_.channels_last = chain_.operands[0].channels_last;
    return std::move(chain_);
  }

  Result<EpilogueChain> follow() {
    KILN_RETURN_IF_ERROR(take_operands());
    skip_conversions();
    while (at_ != body_.outputs()[0]) {
      if (!gelu() && !swish() && !one_node()) {
        return refuse("the epilogue has an operation that a library does not fuse");
      }
      skip_conversions();
    }
    if (seen_.size() != body_.topological_order().size()) return refuse("the epilogue is no chain");
    return std::move(chain_);
  }

 private:
  Result<> take_operands() {
    const ir::Node& anchor = body_.node(chain_.anchor);
    for (size_t i = 0; i < anchor.inputs.size(); ++i) {
      const auto operand = resolve(anchor.inputs[i]);
      if (!operand) return refuse("the body has a prologue");
      if (i < 2) {
        chain_.operands.push_back(*operand);
      } else {
        chain_.steps.push_back({Kind::kBias, *operand});
      }
    }
    return Ok();
  }

  // What a value is when casts and one change of layout are seen through; nullopt if computed.
  std::optional<ChainOperand> resolve(ValueId id) {
    ChainOperand operand{id};
    std::vector<NodeId> passed;
    bool casts = false;
    while (body_.value(operand.value).producer != ir::kNoNode) {
      const NodeId producer = body_.value(operand.value).producer;
      const ir::Node& node = body_.node(producer);
      const auto* transpose = std::get_if<ir::Transpose>(&node.op);
      const bool layout = transpose && !operand.channels_last && transpose->perm.size() > 2 &&
                          transpose->perm == channels_second(body_.type(id).rank());
      if (!layout && !is_float_cast(body_, node)) return std::nullopt;
      (layout ? operand.channels_last : casts) = true;
      passed.push_back(producer);
      operand.value = node.inputs[0];
    }
    seen_.insert(passed.begin(), passed.end());
    chain_.casts |= casts;
    return operand;
  }

  void skip_conversions() {
    while (body_.value(at_).uses.size() == 1 && !body_.is_output(at_)) {
      const NodeId id = body_.value(at_).uses[0].node;
      const ir::Node& node = body_.node(id);
      const auto* transpose = std::get_if<ir::Transpose>(&node.op);
      const bool layout = transpose && !chain_.channels_last && transpose->perm.size() > 2 &&
                          transpose->perm == channels_last(body_.type(at_).rank()) &&
                          body_.is_output(node.outputs[0]);
      if (!layout && !is_float_cast(body_, node)) return;
      (layout ? chain_.channels_last : chain_.casts) = true;
      seen_.insert(id);
      at_ = node.outputs[0];
    }
  }

  bool step(ChainStep step, ValueId next, std::initializer_list<ValueId> made) {
    chain_.steps.push_back(step);
    at_ = next;
    for (ValueId value : made) seen_.insert(body_.value(value).producer);
    return true;
  }

  // The only user of a value, when it is this function.
  const ir::Node* user(ValueId id, ScalarFn fn) const {
    const auto& uses = body_.value(id).uses;
    if (uses.size() != 1 || body_.is_output(id)) return nullptr;
    return as(body_.node(uses[0].node), fn);
  }
  static const ir::Node* as(const ir::Node& node, ScalarFn fn) {
    const auto* pointwise = std::get_if<ir::Pointwise>(&node.op);
    return pointwise && pointwise->fn == fn ? &node : nullptr;
  }
  static ValueId other(const ir::Node& node, ValueId one) {
    return node.inputs[0] == one ? node.inputs[1] : node.inputs[0];
  }

  bool swish() {
    if (body_.value(at_).uses.size() != 2) return false;
    for (const ir::Use& use : body_.value(at_).uses) {
      const ir::Node* sigmoid = as(body_.node(use.node), ScalarFn::kSigmoid);
      if (!sigmoid) continue;
      const ValueId gate = sigmoid->outputs[0];
      const ir::Node* product = user(gate, ScalarFn::kMul);
      if (product && other(*product, gate) == at_) {
        return step({Kind::kSwish}, product->outputs[0], {gate, product->outputs[0]});
      }
    }
    return false;
  }

  // x * 0.5 * (1 + erf(x / sqrt 2)), the factors in any order.
  bool gelu() {
    if (body_.value(at_).uses.size() != 2) return false;
    for (const ir::Use& use : body_.value(at_).uses) {
      const ir::Node& scaled = body_.node(use.node);
      const bool by_division = as(scaled, ScalarFn::kDiv) && scaled.inputs[0] == at_ &&
                               is_near(scalar_of(body_, scaled.inputs[1]), std::sqrt(2.0));
      const bool by_product = as(scaled, ScalarFn::kMul) &&
                              is_near(scalar_of(body_, other(scaled, at_)), std::sqrt(0.5));
      if (!by_division && !by_product) continue;
      const ir::Node* erf = user(scaled.outputs[0], ScalarFn::kErf);
      const ir::Node* plus = erf ? user(erf->outputs[0], ScalarFn::kAdd) : nullptr;
      if (!plus || !is_near(scalar_of(body_, other(*plus, erf->outputs[0])), 1)) continue;
      const auto products = gelu_products(plus->outputs[0]);
      if (!products) return false;
      return step({Kind::kGelu}, products->second,
                  {scaled.outputs[0], erf->outputs[0], plus->outputs[0], products->first,
                   products->second});
    }
    return false;
  }

  // (x * p) * 0.5, or x * (p * 0.5), or (x * 0.5) * p; p = 1 + erf. Both products, the last second.
  std::optional<std::pair<ValueId, ValueId>> gelu_products(ValueId p) const {
    const ir::Node* first = user(p, ScalarFn::kMul);
    if (!first) return std::nullopt;
    const ValueId factor = other(*first, p), made = first->outputs[0];
    const ir::Node* second = user(made, ScalarFn::kMul);
    const bool then_half =
        factor == at_ && second && is_near(scalar_of(body_, other(*second, made)), 0.5);
    const bool half_first =
        is_near(scalar_of(body_, factor), 0.5) && second && other(*second, made) == at_;
    if (then_half || half_first) return std::pair{made, second->outputs[0]};
    const NodeId producer = body_.value(factor).producer;
    const ir::Node* half =
        producer == ir::kNoNode ? nullptr : as(body_.node(producer), ScalarFn::kMul);
    const bool halved = half && (half->inputs[0] == at_ || half->inputs[1] == at_) &&
                        is_near(scalar_of(body_, other(*half, at_)), 0.5);
    return halved ? std::optional(std::pair{factor, made}) : std::nullopt;
  }

  bool one_node() {
    const auto& uses = body_.value(at_).uses;
    if (uses.size() != 1 || body_.is_output(at_)) return false;
    const ir::Node& node = body_.node(uses[0].node);
    const auto* pointwise = std::get_if<ir::Pointwise>(&node.op);
    if (!pointwise || body_.type(node.outputs[0]) != body_.type(at_)) return false;
    const ValueId next = node.outputs[0];
    switch (pointwise->fn) {
      case ScalarFn::kSigmoid:
        return step({Kind::kSigmoid}, next, {next});
      case ScalarFn::kTanh:
        return step({Kind::kTanh}, next, {next});
      case ScalarFn::kMax:
        return relu_or_clip(node);
      case ScalarFn::kAdd:
        return addition(node);
      default:
        return false;
    }
  }

  bool relu_or_clip(const ir::Node& node) {
    const ValueId bounded = node.outputs[0];
    const auto low = scalar_of(body_, other(node, at_));
    if (!low) return false;
    const ir::Node* upper = user(bounded, ScalarFn::kMin);
    const auto high = upper ? scalar_of(body_, other(*upper, bounded)) : std::nullopt;
    if (high) {
      const ValueId end = upper->outputs[0];
      return step({Kind::kClip, {}, *low, *high}, end, {bounded, end});
    }
    return *low == 0 && step({Kind::kRelu}, bounded, {bounded});
  }

  // Whether `shape` has one value a channel of the anchor's result.
  bool is_bias(const Shape& shape) const {
    const Shape& whole = body_.type(at_).shape;
    if (matmul_) return shape == Shape{whole.back()};
    Shape wanted(whole.size(), 1);
    wanted[1] = whole[1];
    return shape == wanted || shape == Shape(wanted.begin() + 1, wanted.end());
  }

  bool addition(const ir::Node& node) {
    const ValueId addend = other(node, at_);
    if (addend == at_) return false;
    const Shape& shape = body_.type(addend).shape;
    const bool whole = shape == body_.type(at_).shape;
    const bool bias = !whole && chain_.steps.empty() && is_bias(shape);
    if (!whole && !bias) return false;
    const auto operand = resolve(addend);
    if (!operand) return false;
    const ValueId next = node.outputs[0];
    return step({bias ? Kind::kBias : Kind::kAdd, *operand}, next, {next});
  }

  const Graph& body_;
  ValueId at_;
  bool matmul_ = false;
  EpilogueChain chain_;
  std::set<NodeId> seen_;
};

bool is_anchor(const ir::Op& op) {
  return std::holds_alternative<ir::MatMul>(op) || std::holds_alternative<ir::Conv>(op) ||
         std::holds_alternative<ir::ConvTranspose>(op);
}

Result<NodeId> only_anchor(const Graph& body) {
  std::optional<NodeId> anchor;
  for (NodeId id : body.topological_order()) {
    if (!is_anchor(body.node(id).op)) continue;
    if (anchor) return refuse("the body has two anchors");
    anchor = id;
  }
  if (!anchor || body.outputs().size() != 1) return refuse("the body has no single result");
  return *anchor;
}

}  // namespace

std::vector<int64_t> channels_second(int64_t rank) {
  std::vector<int64_t> perm = {0, rank - 1};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
  return perm;
}
std::vector<int64_t> channels_last(int64_t rank) {
  std::vector<int64_t> perm = {0};
  for (int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
  perm.push_back(1);
  return perm;
}

Result<EpilogueChain> match_epilogue_chain(const Graph& body) {
  KILN_ASSIGN_OR_RETURN(const NodeId anchor, only_anchor(body));
  return Walk(body, anchor).follow();
}

Result<EpilogueChain> match_anchor(const Graph& body) {
  KILN_ASSIGN_OR_RETURN(const NodeId anchor, only_anchor(body));
  return Walk(body, anchor).stop_at_anchor();
}

}  // namespace kiln
