#include "builder/tactics/decompose_attention.h"

#include <cstring>
#include <limits>
#include <map>

namespace kiln {
namespace {

using ir::Graph;
using ir::ValueId;

// Appends nodes and remembers the first failure, so that the formula reads as one.
class Formula {
 public:
  explicit Formula(Graph& graph, const ir::Node& node) : graph_(graph), node_(node) {}

  ValueId emit(ir::Op op, std::vector<ValueId> inputs) {
    if (error_) return inputs.front();
    auto made = graph_.add_node(node_.name, node_.origins, std::move(op), std::move(inputs));
    if (made.ok()) return graph_.result(*made);
    error_ = std::move(made).error();
    return graph_.inputs().front();
  }
  ValueId apply(ScalarFn fn, std::vector<ValueId> inputs) {
    return emit(ir::Pointwise{fn}, std::move(inputs));
  }
  ValueId scalar(float value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return graph_.add_constant("", {DType::kF32, {}}, SharedBytes::take(std::move(bytes)));
  }
  ValueId to_f32(ValueId x) {
    return graph_.type(x).dtype == DType::kF32 ? x : emit(ir::Cast{DType::kF32}, {x});
  }
  // [S, T] bool, true where t <= s.
  ValueId causal_mask(int64_t rows, int64_t columns) {
    std::vector<std::byte> bytes(static_cast<size_t>(rows * columns));
    for (int64_t s = 0; s < rows; ++s) {
      for (int64_t t = 0; t < columns; ++t) {
        bytes[static_cast<size_t>(s * columns + t)] = std::byte{t <= s};
      }
    }
    return graph_.add_constant("causal", {DType::kBool, {rows, columns}},
                               SharedBytes::take(std::move(bytes)));
  }
  const TensorType& type(ValueId x) const { return graph_.type(x); }
  const std::optional<Error>& error() const { return error_; }

 private:
  Graph& graph_;
  const ir::Node& node_;
  std::optional<Error> error_;
};

ValueId masked_scores(Formula& f, const ir::Attention& op, ValueId scores, const ValueId* mask) {
  const Shape shape = f.type(scores).shape;
  // With -inf a fully masked row can be told by its maximum; else its scores must stay equal.
  const float lowest = op.masked_row_zero ? -std::numeric_limits<float>::infinity()
                                          : std::numeric_limits<float>::lowest();
  scores = f.apply(ScalarFn::kMul, {f.to_f32(scores), f.scalar(static_cast<float>(op.scale))});
  if (op.softcap != 0) {
    const ValueId cap = f.scalar(static_cast<float>(op.softcap));
    const ValueId bent = f.apply(ScalarFn::kTanh, {f.apply(ScalarFn::kDiv, {scores, cap})});
    scores = f.apply(ScalarFn::kMul, {bent, cap});
  }
  if (mask && f.type(*mask).dtype == DType::kBool) {
    scores = f.apply(ScalarFn::kWhere, {*mask, scores, f.scalar(lowest)});
  } else if (mask) {
    scores = f.apply(ScalarFn::kAdd, {scores, f.to_f32(*mask)});
  }
  if (op.causal) {
    const ValueId allowed = f.causal_mask(shape[2], shape[3]);
    scores = f.apply(ScalarFn::kWhere, {allowed, scores, f.scalar(lowest)});
  }
  return scores;
}

// Shares the heads of k and v among groups of q's: [B, G, T, D] -> [B, H, T, D].
ValueId repeat_heads(Formula& f, ValueId x, int64_t heads) {
  const Shape s = f.type(x).shape;
  if (s[1] == heads) return x;
  const ValueId split = f.emit(ir::Reshape{{s[0], s[1], 1, s[2], s[3]}}, {x});
  const ValueId wide = f.emit(ir::Broadcast{{s[0], s[1], heads / s[1], s[2], s[3]}}, {split});
  return f.emit(ir::Reshape{{s[0], heads, s[2], s[3]}}, {wide});
}

ValueId spell_out(Formula& f, const ir::Attention& op, const std::vector<ValueId>& in) {
  const DType dtype = f.type(in[0]).dtype;
  const int64_t heads = f.type(in[0]).shape[1];
  const ValueId k = repeat_heads(f, in[1], heads), v = repeat_heads(f, in[2], heads);
  const ValueId* mask = in.size() == 4 ? &in[3] : nullptr;
  const ValueId scores = masked_scores(f, op, f.emit(ir::MatMul{false, true}, {in[0], k}), mask);
  const ValueId most = f.emit(ir::Reduce{ReduceFn::kMax, {3}, true}, {scores});
  const ValueId weights = f.apply(ScalarFn::kExp, {f.apply(ScalarFn::kSub, {scores, most})});
  const ValueId sum = f.emit(ir::Reduce{ReduceFn::kSum, {3}, true}, {weights});
  ValueId probabilities = f.apply(ScalarFn::kDiv, {weights, sum});
  if (op.masked_row_zero) {
    const ValueId low = f.scalar(-std::numeric_limits<float>::infinity());
    const ValueId empty = f.apply(ScalarFn::kEqual, {most, low});
    probabilities = f.apply(ScalarFn::kWhere, {empty, f.scalar(0), probabilities});
  }
  if (dtype != DType::kF32) probabilities = f.emit(ir::Cast{dtype}, {probabilities});
  return f.emit(ir::MatMul{}, {probabilities, v});
}

}  // namespace

Result<Graph> decompose_attention(const Graph& body) {
  Graph result;
  std::map<ValueId, ValueId> map;
  const auto mapped = [&](ValueId id) {
    if (const auto found = map.find(id); found != map.end()) return found->second;
    const ir::Value& value = body.value(id);
    return map[id] = result.add_constant(value.name, value.type, *value.constant);
  };
  for (ValueId id : body.inputs()) {
    map[id] = result.add_input(body.value(id).name, body.type(id));
  }
  for (ir::NodeId id : body.topological_order()) {
    const ir::Node& node = body.node(id);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(mapped(input));
    const auto* attention = std::get_if<ir::Attention>(&node.op);
    if (attention) {
      Formula formula(result, node);
      map[node.outputs[0]] = spell_out(formula, *attention, inputs);
      if (formula.error()) return *formula.error();
      continue;
    }
    KILN_ASSIGN_OR_RETURN(const ir::NodeId copy,
                          result.add_node(node.name, node.origins, node.op, std::move(inputs)));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      map[node.outputs[i]] = result.node(copy).outputs[i];
    }
  }
  for (ValueId id : body.outputs()) result.mark_output(mapped(id));
  return result;
}

}  // namespace kiln
