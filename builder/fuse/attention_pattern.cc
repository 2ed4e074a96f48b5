#include "builder/fuse/attention_pattern.h"

#include <algorithm>

#include "builder/clean/constant_value.h"
#include "builder/fuse/attention_mask.h"
#include "builder/fuse/softmax_pattern.h"

namespace kiln::fuse {
namespace {

using ir::Graph;
using ir::made_by;
using ir::operand;
using ir::ValueId;

bool same_shape(const Graph& graph, ValueId a, ValueId b) {
  return graph.type(a).shape == graph.type(b).shape;
}

// x of x * c or x / c with a constant c, which goes into `scale`; else `value` itself.
ValueId strip_scale(const Graph& graph, ValueId value, double& scale) {
  const bool mul = made_by(graph, value, ScalarFn::kMul);
  if (!mul && !made_by(graph, value, ScalarFn::kDiv)) return value;
  for (size_t data : {0, 1}) {
    if (data == 1 && !mul) break;
    const auto factor = clean::splat_of(graph, operand(graph, value, 1 - data));
    const ValueId x = operand(graph, value, data);
    if (!factor || *factor == 0 || !same_shape(graph, x, value)) continue;
    scale = mul ? scale * *factor : scale / *factor;
    return x;
  }
  return value;
}

// The scores of where(condition, scores, fill) or where(condition, fill, scores).
struct MaskedScores {
  ValueId scores = ir::kNoValue;
  bool keeps = true;
  double fill = 0;
};
std::optional<MaskedScores> match_where(const Graph& graph, ValueId value) {
  if (!made_by(graph, value, ScalarFn::kWhere)) return std::nullopt;
  for (const bool keeps : {true, false}) {
    const auto fill = clean::splat_of(graph, operand(graph, value, keeps ? 2 : 1));
    const ValueId scores = operand(graph, value, keeps ? 1 : 2);
    if (fill && masks_out(*fill) && same_shape(graph, scores, value)) {
      return MaskedScores{scores, keeps, *fill};
    }
  }
  return std::nullopt;
}

// Whether a reshape leaves rows and columns alone and splits the leading axes or joins them.
bool splits_or_joins(const Shape& a, const Shape& b) {
  return joined_axes(a, b).has_value() || joined_axes(b, a).has_value();
}

// Whether a MatMul's product of that shape is behind scales, casts, masks and reshapes of the
// leading axes.
bool leads_to_product(const Graph& graph, ValueId value, const Shape& shape) {
  if (graph.type(value).shape != shape) return false;
  if (ir::producer_as<ir::MatMul>(graph, value)) return true;
  double ignored = 1;
  if (const ValueId below = strip_scale(graph, value, ignored); below != value) {
    return leads_to_product(graph, below, shape);
  }
  if (ir::producer_as<ir::Cast>(graph, value)) {
    return leads_to_product(graph, operand(graph, value, 0), shape);
  }
  if (const auto masked = match_where(graph, value)) {
    return leads_to_product(graph, masked->scores, shape);
  }
  if (ir::producer_as<ir::Reshape>(graph, value)) {
    const ValueId below = operand(graph, value, 0);
    const Shape& other = graph.type(below).shape;
    return splits_or_joins(shape, other) && leads_to_product(graph, below, other);
  }
  return made_by(graph, value, ScalarFn::kAdd) &&
         (leads_to_product(graph, operand(graph, value, 0), shape) ||
          leads_to_product(graph, operand(graph, value, 1), shape));
}

// Takes one mask off the scores: the value below it, or kNoValue if there is none to take.
ValueId strip_mask(const Graph& graph, ValueId value, AttentionPattern& pattern) {
  const bool split = graph.type(value).shape == pattern.split;
  if (made_by(graph, value, ScalarFn::kAdd)) {
    for (size_t data : {0, 1}) {
      const ValueId scores = operand(graph, value, data);
      if (!leads_to_product(graph, scores, graph.type(value).shape)) continue;
      pattern.additive.push_back({operand(graph, value, 1 - data), split});
      return scores;
    }
  }
  const auto masked = match_where(graph, value);
  if (!masked || split || pattern.condition != ir::kNoValue) return ir::kNoValue;
  pattern.condition = operand(graph, value, 0);
  pattern.condition_keeps = masked->keeps;
  pattern.fill = masked->fill;
  return masked->scores;
}

// Takes off a reshape that splits the leading axes of the scores for a mask, or joins them again;
// kNoValue if there is none.
ValueId strip_split(const Graph& graph, ValueId value, AttentionPattern& pattern) {
  if (!ir::producer_as<ir::Reshape>(graph, value)) return ir::kNoValue;
  const ValueId below = operand(graph, value, 0);
  const Shape& shape = graph.type(below).shape;
  const Shape& scores = graph.type(pattern.scores).shape;
  if (graph.type(value).shape == pattern.split) return shape == scores ? below : ir::kNoValue;
  if (!pattern.split.empty() || !joined_axes(shape, scores)) return ir::kNoValue;
  pattern.split = shape;
  return below;
}

// From the softmax's input down to the product of q and k; false where something else is between.
bool walk_scores(const Graph& graph, ValueId at, AttentionPattern& pattern, std::string& miss) {
  const ValueId top = at;
  bool scaled = false;  // a mask below a scale would have been scaled too
  while (true) {
    if (at != top && !ir::used_once(graph, at)) {
      miss = "the scores are also read elsewhere";
      return false;
    }
    if (ir::producer_as<ir::MatMul>(graph, at)) break;
    ValueId below = strip_scale(graph, at, pattern.scale);
    scaled |= below != at;
    const auto* cast = ir::producer_as<ir::Cast>(graph, at);
    if (below == at && cast && is_float(cast->to)) below = operand(graph, at, 0);
    if (below == at) below = strip_split(graph, at, pattern);
    if (below == ir::kNoValue) below = scaled ? ir::kNoValue : strip_mask(graph, at, pattern);
    if (below == ir::kNoValue) {
      const ir::NodeId producer = graph.value(at).producer;
      miss = producer == ir::kNoNode
                 ? "the scores do not come from a MatMul"
                 : "node '" + graph.node(producer).name + "' stands between MatMul and softmax";
      return false;
    }
    at = below;
  }
  const auto& product = *ir::producer_as<ir::MatMul>(graph, at);
  if (product.transpose_a) {
    miss = "q is stored transposed";
    return false;
  }
  pattern.q = operand(graph, at, 0);
  pattern.k = operand(graph, at, 1);
  pattern.k_is_transposed = !product.transpose_b;
  return true;
}

ValueId strip_scales(const Graph& graph, ValueId value, double& scale) {
  for (ValueId below = strip_scale(graph, value, scale); below != value;
       below = strip_scale(graph, value, scale)) {
    value = below;
  }
  return value;
}

}  // namespace

std::optional<std::vector<size_t>> joined_axes(const Shape& split, const Shape& merged) {
  if (merged.size() < 3 || split.size() <= merged.size() ||
      !std::equal(merged.end() - 2, merged.end(), split.end() - 2)) {
    return std::nullopt;
  }
  std::vector<size_t> joined;
  size_t next = 0;
  for (size_t axis = 0; axis + 2 < merged.size(); ++axis) {
    const size_t first = next;
    int64_t extent = 1;
    while (next + 2 < split.size() && (next == first || extent != merged[axis])) {
      extent *= split[next++];
    }
    if (extent != merged[axis]) return std::nullopt;
    joined.push_back(next - first);
  }
  if (next + 2 != split.size()) return std::nullopt;
  return joined;
}

std::optional<AttentionPattern> match_attention(const Graph& graph, ir::NodeId root,
                                                std::string& miss) {
  const auto* matmul = std::get_if<ir::MatMul>(&graph.node(root).op);
  if (!matmul || matmul->transpose_a) return std::nullopt;
  const ValueId probabilities = graph.node(root).inputs[0];
  const auto softmax = match_softmax(graph, probabilities);
  if (!softmax) return std::nullopt;
  if (!ir::used_once(graph, probabilities)) {
    miss = "the probabilities are also read elsewhere";
    return std::nullopt;
  }
  AttentionPattern pattern;
  pattern.nan_becomes_zero = softmax->nan_becomes_zero;
  pattern.scores = softmax->input;
  pattern.v = graph.node(root).inputs[1];
  pattern.v_is_transposed = matmul->transpose_b;
  if (!walk_scores(graph, softmax->input, pattern, miss)) return std::nullopt;
  pattern.q = strip_scales(graph, pattern.q, pattern.scale);
  pattern.k = strip_scales(graph, pattern.k, pattern.scale);
  return pattern;
}

}  // namespace kiln::fuse
