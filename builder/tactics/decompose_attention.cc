#include "builder/tactics/decompose_attention.h"

#include <limits>

#include "builder/tactics/spell_out/formula.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::ValueId;

ValueId masked_scores(Formula& f, const ir::Attention& op, ValueId scores, const ValueId* mask) {
  const Shape shape = f.type(scores).shape;
  // With -inf a fully masked row can be told by its maximum; else its scores must stay equal.
  const float lowest = op.masked_row_zero ? -std::numeric_limits<float>::infinity()
                                          : std::numeric_limits<float>::lowest();
  scores = f.apply(ScalarFn::kMul, {f.cast(scores, DType::kF32), f.number(DType::kF32, op.scale)});
  if (op.softcap != 0) {
    const ValueId cap = f.number(DType::kF32, op.softcap);
    const ValueId bent = f.apply(ScalarFn::kTanh, {f.apply(ScalarFn::kDiv, {scores, cap})});
    scores = f.apply(ScalarFn::kMul, {bent, cap});
  }
  if (mask && f.type(*mask).dtype == DType::kBool) {
    scores = f.apply(ScalarFn::kWhere, {*mask, scores, f.number(DType::kF32, lowest)});
  } else if (mask) {
    scores = f.apply(ScalarFn::kAdd, {scores, f.cast(*mask, DType::kF32)});
  }
  if (op.causal) {
    const ValueId allowed =
        f.apply(ScalarFn::kGreaterEqual, {f.iota(2, 0, shape[2]), f.iota(2, 1, shape[3])});
    scores = f.apply(ScalarFn::kWhere, {allowed, scores, f.number(DType::kF32, lowest)});
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
    const ValueId low = f.number(DType::kF32, -std::numeric_limits<double>::infinity());
    const ValueId empty = f.apply(ScalarFn::kEqual, {most, low});
    probabilities = f.apply(ScalarFn::kWhere, {empty, f.number(DType::kF32, 0), probabilities});
  }
  return f.emit(ir::MatMul{}, {f.cast(probabilities, dtype), v});
}

}  // namespace

Result<Graph> decompose_attention(const Graph& body) {
  return write_formulas(body, [](Formula& formula, const ir::Node& node, const auto& inputs) {
    const auto* attention = std::get_if<ir::Attention>(&node.op);
    if (!attention) return std::vector<ValueId>();
    return std::vector<ValueId>{spell_out(formula, *attention, inputs)};
  });
}

}  // namespace kiln
