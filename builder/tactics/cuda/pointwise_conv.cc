#include "builder/tactics/cuda/pointwise_conv.h"

#include <algorithm>
#include <map>

#include "builder/tactics/epilogue_chain.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

bool all_are(const std::vector<int64_t>& numbers, int64_t wanted) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == wanted; });
}

Result<> check_convolution(const Graph& body, const EpilogueChain& chain) {
  const ir::Node& node = body.node(chain.anchor);
  const auto* conv = std::get_if<ir::Conv>(&node.op);
  if (conv == nullptr || conv->groups != 1) return refuse("it is no convolution of all channels");
  const Shape& w = body.type(node.inputs[1]).shape;
  const bool single = all_are({w.begin() + 2, w.end()}, 1) && all_are(conv->strides, 1) &&
                      all_are(conv->pads_begin, 0) && all_are(conv->pads_end, 0);
  if (!single) return refuse("its windows are no single cells");
  if (!chain.operands[0].channels_last) return refuse("channels are not last");
  if (body.type(node.outputs[0]).elements() == 0) return refuse("the result is empty");
  return Ok();
}

// Copies the body with the shapes of a product. Images [N, C, cells...] become [N cells, C].
class Rewriter {
 public:
  Rewriter(const Graph& body, const EpilogueChain& chain)
      : body_(body), chain_(chain), image_(body.type(body.result(chain.anchor)).shape) {}

  Result<std::shared_ptr<const Graph>> run() {
    for (ValueId input : body_.inputs()) {
      const ir::Value& value = body_.value(input);
      KILN_ASSIGN_OR_RETURN(Shape shape, shape_of_input(input));
      map_[input] = made_->add_input(value.name, {value.type.dtype, std::move(shape)});
    }
    for (NodeId id : body_.topological_order()) KILN_RETURN_IF_ERROR(copy(body_.node(id), id));
    for (ValueId output : body_.outputs()) {
      if (!turned_.count(output)) return refuse("channels of the result are not last");
      made_->mark_output(map_.at(output));
    }
    return std::shared_ptr<const Graph>(std::move(made_));
  }

 private:
  int64_t channels() const { return image_[1]; }

  // As its bytes are read: images with channels last, filters, and one value a channel.
  Result<Shape> shape_of_input(ValueId input) const {
    const Shape& shape = body_.type(input).shape;
    if (input == chain_.operands[1].value) {
      return Shape{channels(), element_count(shape) / channels()};
    }
    const auto& uses = body_.value(input).uses;
    const bool image = !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](auto& use) {
      return puts_channels_second(body_.node(use.node).op);
    });
    if (image) return Shape{element_count(shape) / shape.back(), shape.back()};
    const bool by_channel = element_count(shape) == channels() &&
                            (shape.size() == 1 || channel_axis(shape) == channels());
    if (by_channel) return Shape{channels()};
    return refuse("an operand is neither an image nor one value a channel");
  }

  // The extent where one that broadcasts to the image has its channels.
  int64_t channel_axis(const Shape& shape) const {
    const size_t behind = image_.size() - 2;
    return shape.size() > behind ? shape[shape.size() - behind - 1] : 0;
  }

  int64_t rank() const { return static_cast<int64_t>(image_.size()); }

  bool puts_channels_second(const ir::Op& op) const {
    const auto* transpose = std::get_if<ir::Transpose>(&op);
    return transpose && transpose->perm == channels_second(rank());
  }

  bool puts_channels_last(const ir::Op& op) const {
    const auto* transpose = std::get_if<ir::Transpose>(&op);
    return transpose && transpose->perm == channels_last(rank());
  }

  Result<> copy(const ir::Node& node, NodeId id) {
    const ValueId result = node.outputs[0];
    if (id == chain_.anchor) return multiply(node);
    if (puts_channels_second(node.op) && body_.value(node.inputs[0]).producer == ir::kNoNode) {
      map_[result] = map_.at(node.inputs[0]);
      return Ok();
    }
    if (puts_channels_last(node.op) && body_.is_output(result)) {
      map_[result] = map_.at(node.inputs[0]);
      turned_[result] = true;
      return Ok();
    }
    const bool elementwise =
        std::holds_alternative<ir::Pointwise>(node.op) || std::holds_alternative<ir::Cast>(node.op);
    if (!elementwise) return refuse("what follows is more than functions of single elements");
    return emit(node.op, node.inputs, result);
  }

  Result<> multiply(const ir::Node& node) {
    const ValueId result = node.outputs[0];
    KILN_RETURN_IF_ERROR(emit(ir::MatMul{false, true}, {node.inputs[0], node.inputs[1]}, result));
    if (node.inputs.size() < 3) return Ok();
    const ValueId product = map_.at(result);
    KILN_ASSIGN_OR_RETURN(const NodeId sum,
                          made_->add_node(node.name, node.origins, ir::Pointwise{ScalarFn::kAdd},
                                          {product, map_.at(node.inputs[2])}));
    map_[result] = made_->result(sum);
    return Ok();
  }

  Result<> emit(const ir::Op& op, const std::vector<ValueId>& inputs, ValueId result) {
    std::vector<ValueId> arguments;
    for (ValueId input : inputs) {
      const ir::Value& value = body_.value(input);
      if (value.constant && !map_.count(input)) {
        if (value.type.elements() != 1) return refuse("an operand is a constant of the body");
        map_[input] = made_->add_constant(value.name, {value.type.dtype, {}}, *value.constant);
      }
      arguments.push_back(map_.at(input));
    }
    KILN_ASSIGN_OR_RETURN(const NodeId id,
                          made_->add_node("product", {}, op, std::move(arguments)));
    map_[result] = made_->result(id);
    return Ok();
  }

  const Graph& body_;
  const EpilogueChain& chain_;
  const Shape& image_;
  std::shared_ptr<Graph> made_ = std::make_shared<Graph>();
  std::map<ValueId, ValueId> map_;
  std::map<ValueId, bool> turned_;
};

}  // namespace

Result<ir::Region> as_product(const ir::Region& region) {
  if (region.kind != ir::Region::Kind::kConvolution) return refuse("it is no convolution");
  KILN_ASSIGN_OR_RETURN(const EpilogueChain chain, match_anchor(*region.body));
  KILN_RETURN_IF_ERROR(check_convolution(*region.body, chain));
  ir::Region product{ir::Region::Kind::kContraction, nullptr, region.origins, region.rule};
  KILN_ASSIGN_OR_RETURN(product.body, Rewriter(*region.body, chain).run());
  return product;
}

}  // namespace kiln
