#include "builder/tactics/cuda/cublaslt_epilogue.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "builder/clean/constant_value.h"
#include "builder/fuse/region.h"
#include "builder/tactics/cuda/cublaslt_problem.h"
#include "builder/verify/reference.h"

namespace kiln {
namespace {

using cuda::MatmulProblem;
using ir::Graph;
using ir::NodeId;
using ir::ValueId;
using Activation = MatmulProblem::Activation;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

bool is_float_cast(const Graph& body, const ir::Node& node) {
  return std::holds_alternative<ir::Cast>(node.op) && is_float(body.type(node.inputs[0]).dtype) &&
         is_float(body.type(node.outputs[0]).dtype);
}

// The scalar function from one value of a body to its output, at the points x.
class ScalarReplay {
 public:
  ScalarReplay(const Graph& body, ValueId from) : body_(body), from_(from) {}

  // In f64, without the casts between, up to `output`. The nodes that it took are in `seen`.
  Result<std::vector<double>> run(const std::vector<double>& x, ValueId output,
                                  std::set<NodeId>& seen) {
    const TensorType type{DType::kF64, {static_cast<int64_t>(x.size())}};
    map_[from_] = graph_.add_input("x", type);
    for (NodeId id : body_.topological_order()) {
      const ir::Node& node = body_.node(id);
      const bool reached = std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ValueId input) { return map_.count(input) > 0; });
      if (!reached || map_.count(output)) continue;
      KILN_RETURN_IF_ERROR(copy(node));
      seen.insert(id);
    }
    if (!map_.count(output)) return refuse("the result does not depend on the product");
    graph_.mark_output(map_[output]);
    std::vector<std::byte> bytes(x.size() * sizeof(double));
    std::copy_n(reinterpret_cast<const std::byte*>(x.data()), bytes.size(), bytes.begin());
    const HostTensor input{type, SharedBytes::take(std::move(bytes))};
    KILN_ASSIGN_OR_RETURN(const auto results, run_reference(graph_, {&input, 1}));
    if (results[0].type != type) return refuse("the epilogue is no function of one element");
    const auto* values = reinterpret_cast<const double*>(results[0].bytes.data());
    return std::vector<double>(values, values + x.size());
  }

 private:
  Result<> copy(const ir::Node& node) {
    const ValueId made = node.outputs[0];
    if (is_float_cast(body_, node) || std::holds_alternative<ir::Reshape>(node.op)) {
      map_[made] = map_.at(node.inputs[0]);
      return Ok();
    }
    if (!std::holds_alternative<ir::Pointwise>(node.op)) {
      return refuse("the epilogue has an operation that cuBLASLt does not fuse");
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) {
      KILN_ASSIGN_OR_RETURN(const ValueId mapped, operand(input));
      inputs.push_back(mapped);
    }
    KILN_ASSIGN_OR_RETURN(const NodeId id, graph_.add_node("", {}, node.op, std::move(inputs)));
    map_[made] = graph_.result(id);
    return Ok();
  }

  Result<ValueId> operand(ValueId id) {
    if (const auto known = map_.find(id); known != map_.end()) return known->second;
    const auto number = clean::splat_of(body_, id);
    if (!number) return refuse("the epilogue reads more than cuBLASLt can");
    return clean::add_doubles(graph_, "", {DType::kF64, {}}, {&*number, 1});
  }

  const Graph& body_;
  ValueId from_;
  Graph graph_;
  std::map<ValueId, ValueId> map_;
};

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

std::optional<Activation> activation_of(const std::vector<double>& x, const std::vector<double>& y,
                                        double tolerance) {
  const auto is = [&](auto function) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double wanted = function(x[i]);
      if (!(std::abs(y[i] - wanted) <= tolerance * (1 + std::abs(wanted)))) return false;
    }
    return true;
  };
  if (is([](double v) { return v; })) return Activation::kNone;
  if (is([](double v) { return std::max(v, 0.0); })) return Activation::kRelu;
  if (is(gelu_tanh)) return Activation::kGeluTanh;
  return std::nullopt;
}

// Walks from the anchor's result to the activation.
class Match {
 public:
  Match(const Graph& body, NodeId anchor, FusedMatmul& fused)
      : body_(body), at_(body.result(anchor)), end_(body.outputs()[0]), fused_(fused) {
    seen_.insert(anchor);
  }

  Result<> run() {
    if (cuda::quantises(fused_.problem)) KILN_RETURN_IF_ERROR(quantisation());
    for (;;) {
      skip_conversions();
      const ir::Node* user = only_user();
      if (user == nullptr || !(factor(*user) || addition(*user))) break;
    }
    if (residual_) fused_.operands.push_back(*residual_);
    if (at_ != end_) KILN_RETURN_IF_ERROR(activation());
    if (seen_.size() != body_.topological_order().size()) return refuse("the epilogue is no chain");
    return Ok();
  }

 private:
  // All that is left must be one.
  Result<> activation() {
    std::vector<double> x;
    for (int i = -96; i <= 96; ++i) x.push_back(i / 12.0);
    KILN_ASSIGN_OR_RETURN(const auto y, ScalarReplay(body_, at_).run(x, end_, seen_));
    constexpr double kExact = 1e-6, kHalf = 5e-4;
    const bool narrow = bits_of(body_.type(body_.outputs()[0]).dtype) <= 16;
    const auto activation = activation_of(x, y, narrow ? kHalf : kExact);
    if (!activation) return refuse("the activation is none of cuBLASLt's");
    fused_.problem.activation = *activation;
    return Ok();
  }

  // The last nodes of the body: a cast to codes and, in front of it, a division or product by one
  // number.
  Result<> quantisation() {
    const NodeId last = body_.value(end_).producer;
    const auto* cast = std::get_if<ir::Cast>(&body_.node(last).op);
    if (cast == nullptr || !cast->saturate) return refuse("the result is not saturated last");
    seen_.insert(last);
    end_ = body_.node(last).inputs[0];
    const NodeId scaling = body_.value(end_).producer;
    if (scaling == ir::kNoNode) return refuse("the result does not depend on the product");
    const ir::Node& node = body_.node(scaling);
    const ScalarFn fn = function_of(node);
    if (fn != ScalarFn::kMul && fn != ScalarFn::kDiv) return Ok();
    const auto number = clean::splat_of(body_, node.inputs[1]);
    if (!number || body_.type(node.inputs[0]).shape != body_.type(end_).shape) return Ok();
    const double scale = fn == ScalarFn::kDiv ? 1 / *number : *number;
    if (!std::isnormal(static_cast<float>(scale))) return refuse("the scale is no number");
    fused_.scale = static_cast<float>(scale);
    seen_.insert(scaling);
    end_ = node.inputs[0];
    return Ok();
  }

  const ir::Node* only_user() const {
    const auto& uses = body_.value(at_).uses;
    if (at_ == end_ || uses.size() != 1) return nullptr;
    return &body_.node(uses[0].node);
  }

  void advance(const ir::Node& node) {
    at_ = node.outputs[0];
    seen_.insert(body_.value(at_).producer);
  }

  void skip_conversions() {
    for (const ir::Node* user = only_user(); user != nullptr; user = only_user()) {
      if (!is_float_cast(body_, *user) && !std::holds_alternative<ir::Reshape>(user->op)) return;
      advance(*user);
    }
  }

  ScalarFn function_of(const ir::Node& node) const {
    const auto* pointwise = std::get_if<ir::Pointwise>(&node.op);
    return pointwise != nullptr ? pointwise->fn : ScalarFn::kIdentity;
  }
  ValueId other(const ir::Node& node) const {
    return node.inputs[0] == at_ ? node.inputs[1] : node.inputs[0];
  }

  // A factor scales the product alone, so nothing may have been added yet.
  bool factor(const ir::Node& node) {
    const ScalarFn fn = function_of(node);
    const bool divides = fn == ScalarFn::kDiv && node.inputs[0] == at_;
    if ((fn != ScalarFn::kMul && !divides) || fused_.problem.bias || residual_) return false;
    const auto number = clean::splat_of(body_, other(node));
    if (!number || (divides && *number == 0) || !keeps_shape(node)) return false;
    const double alpha = divides ? fused_.problem.alpha / *number : fused_.problem.alpha * *number;
    if (!std::isfinite(alpha)) return false;
    fused_.problem.alpha = alpha;
    advance(node);
    return true;
  }

  bool keeps_shape(const ir::Node& node) const {
    return body_.type(node.outputs[0]).shape == body_.type(at_).shape;
  }

  bool addition(const ir::Node& node) {
    if (function_of(node) != ScalarFn::kAdd || !keeps_shape(node)) return false;
    const ValueId addend = other(node);
    const auto source = source_of(addend);
    if (!source) return false;
    const TensorType& stored = body_.type(source->first);
    if (!fused_.problem.bias && takes_bias() && is_bias(body_.type(addend).shape)) {
      fused_.problem.bias = true;
      fused_.operands.push_back(source->first);
    } else if (!residual_ && !cuda::quantises(fused_.problem) &&
               body_.type(addend).shape == body_.type(at_).shape &&
               stored.dtype == fused_.problem.result_dtype) {
      fused_.problem.residual = true;
      residual_ = source->first;
    } else {
      return false;
    }
    seen_.insert(source->second.begin(), source->second.end());
    advance(node);
    return true;
  }

  // The input behind float casts and reshapes, with the nodes of these.
  std::optional<std::pair<ValueId, std::vector<NodeId>>> source_of(ValueId id) const {
    std::vector<NodeId> passed;
    while (body_.value(id).producer != ir::kNoNode) {
      const NodeId producer = body_.value(id).producer;
      const ir::Node& node = body_.node(producer);
      if (!is_float_cast(body_, node) && !std::holds_alternative<ir::Reshape>(node.op)) return {};
      passed.push_back(producer);
      id = node.inputs[0];
    }
    if (body_.value(id).constant) return {};
    return std::pair{id, passed};
  }

  // It adds none in f32 to a product of 8-bit operands.
  bool takes_bias() const {
    return bits_of(fused_.problem.operand_dtype) > 8 || fused_.problem.result_dtype != DType::kF32;
  }

  // One value for each of the product's columns: the last axes, whose extents multiply to n.
  bool is_bias(Shape shape) const {
    while (!shape.empty() && shape.front() == 1) shape.erase(shape.begin());
    const Shape& whole = body_.type(at_).shape;
    return shape.size() <= whole.size() && element_count(shape) == columns() &&
           std::equal(shape.rbegin(), shape.rend(), whole.rbegin());
  }
  int64_t columns() const { return fused_.problem.n; }

  const Graph& body_;
  ValueId at_, end_;  // end_: what the call stores, before it is quantised
  FusedMatmul& fused_;
  std::optional<ValueId> residual_;  // goes behind the bias, whichever came first
  std::set<NodeId> seen_;
};

// REQUIRES: result is the dtype that the product is stored in.
Result<FusedMatmul> match_anchor_as(const Graph& body, bool allow_tf32, DType result) {
  const NodeId anchor = fuse::anchor_of(body);
  const auto* op = anchor == ir::kNoNode ? nullptr : std::get_if<ir::MatMul>(&body.node(anchor).op);
  if (op == nullptr) return refuse("the region has no matmul");
  if (body.outputs().size() != 1) return refuse("the region has several results");
  const ir::Node& node = body.node(anchor);
  for (ValueId input : node.inputs) {
    const ir::Value& value = body.value(input);
    if (value.producer != ir::kNoNode || value.constant) return refuse("the body has a prologue");
  }
  FusedMatmul fused;
  fused.operands = node.inputs;
  const TensorType made{result, body.type(body.result(anchor)).shape};
  KILN_ASSIGN_OR_RETURN(fused.problem,
                        matmul_problem({*op, body.type(node.inputs[0]), body.type(node.inputs[1]),
                                        made, allow_tf32}));
  return fused;
}

}  // namespace

Result<FusedMatmul> fuse_matmul_epilogue(const Graph& body, bool allow_tf32) {
  const DType result = body.type(body.outputs()[0]).dtype;
  KILN_ASSIGN_OR_RETURN(FusedMatmul fused, match_anchor_as(body, allow_tf32, result));
  KILN_RETURN_IF_ERROR(Match(body, fuse::anchor_of(body), fused).run());
  return fused;
}

Result<FusedMatmul> match_matmul(const Graph& body, bool allow_tf32) {
  const NodeId anchor = fuse::anchor_of(body);
  if (anchor == ir::kNoNode) return refuse("the region has no matmul");
  return match_anchor_as(body, allow_tf32, body.type(body.result(anchor)).dtype);
}

}  // namespace kiln
