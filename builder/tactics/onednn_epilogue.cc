#include "builder/tactics/onednn_epilogue.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

namespace kiln {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

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

std::string with_numbers(const std::string& name, float a, float b) {
  char text[64];
  const auto first = std::to_chars(text, text + 30, a);
  *first.ptr = ':';
  const auto second = std::to_chars(first.ptr + 1, text + 62, b);
  return name + ":" + std::string(text, second.ptr);
}

// Walks from the anchor's result to the body's output, one post-op at a time.
class Chain {
 public:
  Chain(const Graph& body, NodeId anchor) : body_(body), at_(body.result(anchor)) {
    matmul_ = std::holds_alternative<ir::MatMul>(body.node(anchor).op);
    inputs_ = body.node(anchor).inputs;
    consumed_ = 1;
    if (inputs_.size() == 3) post_ops_.push_back("bias");  // a convolution's own
  }

  Result<> follow() {
    while (at_ != body_.outputs()[0]) {
      if (const auto end = gelu()) {
        step("gelu_erf", *end, 5);
      } else if (const auto swish_end = swish()) {
        step("swish", *swish_end, 2);
      } else if (!one_node()) {
        return refuse("the epilogue has an operation that oneDNN has no post-op for");
      }
    }
    if (consumed_ != live_nodes()) return refuse("the epilogue is no chain");
    return Ok();
  }

  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<std::string>& post_ops() const { return post_ops_; }

 private:
  size_t live_nodes() const { return body_.topological_order().size(); }

  void step(std::string post_op, ValueId next, size_t nodes) {
    post_ops_.push_back(std::move(post_op));
    at_ = next;
    consumed_ += nodes;
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

  std::optional<ValueId> swish() const {
    if (body_.value(at_).uses.size() != 2) return std::nullopt;
    for (const ir::Use& use : body_.value(at_).uses) {
      const ir::Node* sigmoid = as(body_.node(use.node), ScalarFn::kSigmoid);
      if (!sigmoid) continue;
      const ir::Node* product = user(sigmoid->outputs[0], ScalarFn::kMul);
      if (product && other(*product, sigmoid->outputs[0]) == at_) return product->outputs[0];
    }
    return std::nullopt;
  }

  // x * 0.5 * (1 + erf(x / sqrt 2)), the factors in any order.
  std::optional<ValueId> gelu() const {
    if (body_.value(at_).uses.size() != 2) return std::nullopt;
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
      return gelu_product(plus->outputs[0]);
    }
    return std::nullopt;
  }

  // (x * p) * 0.5, or x * (p * 0.5), or (x * 0.5) * p; p = 1 + erf.
  std::optional<ValueId> gelu_product(ValueId p) const {
    const ir::Node* first = user(p, ScalarFn::kMul);
    if (!first) return std::nullopt;
    const ValueId factor = other(*first, p), made = first->outputs[0];
    const ir::Node* second = user(made, ScalarFn::kMul);
    if (factor == at_ && second && is_near(scalar_of(body_, other(*second, made)), 0.5)) {
      return second->outputs[0];
    }
    if (is_near(scalar_of(body_, factor), 0.5) && second && other(*second, made) == at_) {
      return second->outputs[0];
    }
    const NodeId producer = body_.value(factor).producer;
    const ir::Node* half =
        producer == ir::kNoNode ? nullptr : as(body_.node(producer), ScalarFn::kMul);
    const bool halved = half && (half->inputs[0] == at_ || half->inputs[1] == at_) &&
                        is_near(scalar_of(body_, other(*half, at_)), 0.5);
    return halved ? std::optional(made) : std::nullopt;
  }

  bool one_node() {
    const auto& uses = body_.value(at_).uses;
    if (uses.size() != 1 || body_.is_output(at_)) return false;
    const ir::Node& node = body_.node(uses[0].node);
    const auto* pointwise = std::get_if<ir::Pointwise>(&node.op);
    if (!pointwise || body_.type(node.outputs[0]) != body_.type(at_)) return false;
    switch (pointwise->fn) {
      case ScalarFn::kSigmoid:
        step("sigmoid", node.outputs[0], 1);
        return true;
      case ScalarFn::kTanh:
        step("tanh", node.outputs[0], 1);
        return true;
      case ScalarFn::kMax:
        return relu_or_clip(node);
      case ScalarFn::kAdd:
        return addition(node);
      default:
        return false;
    }
  }

  bool relu_or_clip(const ir::Node& node) {
    const auto low = scalar_of(body_, other(node, at_));
    if (!low) return false;
    const ir::Node* upper = user(node.outputs[0], ScalarFn::kMin);
    const auto high = upper ? scalar_of(body_, other(*upper, node.outputs[0])) : std::nullopt;
    if (high) {
      step(with_numbers("clip", *low, *high), upper->outputs[0], 2);
      return true;
    }
    if (*low != 0) return false;
    step("relu", node.outputs[0], 1);
    return true;
  }

  bool addition(const ir::Node& node) {
    const ValueId addend = other(node, at_);
    const Shape& shape = body_.type(addend).shape;
    const bool is_input = body_.value(addend).producer == ir::kNoNode && addend != at_;
    if (!is_input || body_.type(addend).dtype != DType::kF32) return false;
    const bool bias = matmul_ && post_ops_.empty() && shape == Shape{body_.type(at_).shape.back()};
    if (!bias && shape != body_.type(at_).shape) return false;
    inputs_.push_back(addend);
    step(bias ? "bias" : "add", node.outputs[0], 1);
    return true;
  }

  const Graph& body_;
  ValueId at_;
  bool matmul_ = false;
  size_t consumed_ = 0;
  std::vector<ValueId> inputs_;
  std::vector<std::string> post_ops_;
};

bool is_anchor(const ir::Op& op) {
  return std::holds_alternative<ir::MatMul>(op) || std::holds_alternative<ir::Conv>(op) ||
         std::holds_alternative<ir::ConvTranspose>(op);
}

}  // namespace

Result<Lowered> fuse_onednn_epilogue(const Graph& body) {
  std::optional<NodeId> anchor;
  for (NodeId id : body.topological_order()) {
    if (!is_anchor(body.node(id).op)) continue;
    if (anchor) return refuse("the body has two anchors");
    anchor = id;
  }
  if (!anchor || body.outputs().size() != 1) return refuse("the body has no single result");
  const ir::Node& node = body.node(*anchor);
  for (ValueId id : node.inputs) {
    if (body.value(id).producer != ir::kNoNode) return refuse("the body has a prologue");
  }
  Chain chain(body, *anchor);
  KILN_RETURN_IF_ERROR(chain.follow());
  if (body.outputs()[0] == body.result(*anchor)) return refuse("there is no epilogue");
  Operation operation = *ir::operation_of(node.op);
  operation.name = "onednn." + operation.name;
  operation.set("post_ops", chain.post_ops());
  HostCall call{std::move(operation), {}, {{LocalBuffer::Kind::kOutput, 0}}};
  Lowered lowered;
  for (ValueId id : chain.inputs()) {
    uint32_t number = 0;
    while (number < body.inputs().size() && body.inputs()[number] != id) ++number;
    if (number < body.inputs().size()) {
      call.inputs.push_back({LocalBuffer::Kind::kInput, number});
      continue;
    }
    call.inputs.push_back(
        {LocalBuffer::Kind::kConstant, static_cast<uint32_t>(lowered.constants.size())});
    lowered.constants.push_back({body.type(id), *body.value(id).constant});
  }
  lowered.steps.emplace_back(std::move(call));
  return lowered;
}

}  // namespace kiln
