#include "builder/fuse/fuse_attention.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "builder/clean/constant_value.h"
#include "builder/clean/fold_constants.h"
#include "builder/clean/merge_equal_nodes.h"
#include "builder/clean/remove_dead_code.h"
#include "builder/clean/rewrite.h"
#include "builder/fuse/attention_mask.h"
#include "builder/fuse/attention_pattern.h"

namespace kiln::fuse {
namespace {

using clean::Site;
using ir::Graph;
using ir::kNoValue;
using ir::NodeId;
using ir::ValueId;

// `value` with its last two axes swapped; takes a transpose away where one is there.
Result<ValueId> swap_last_two(Site& site, ValueId value) {
  const auto rank = static_cast<size_t>(site.graph.type(value).rank());
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[rank - 1], perm[rank - 2]);
  if (const auto* transpose = ir::producer_as<ir::Transpose>(site.graph, value)) {
    for (int64_t& axis : perm) axis = transpose->perm[static_cast<size_t>(axis)];
    value = ir::operand(site.graph, value, 0);
    if (std::is_sorted(perm.begin(), perm.end())) return value;
  }
  return site.emit(ir::Transpose{std::move(perm)}, {value});
}

Result<ValueId> reshape_to(Site& site, ValueId value, const Shape& shape) {
  if (site.graph.type(value).shape == shape) return value;
  return site.emit(ir::Reshape{shape}, {value});
}

// [..., S, D] as [B, H, S, D]: ranks other than 4 have all their leading axes in B.
Shape four_dims(const Shape& shape) {
  if (shape.size() == 4) return shape;
  int64_t leading = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) leading *= shape[i];
  return {leading, 1, shape[shape.size() - 2], shape[shape.size() - 1]};
}

// The [B, G, T, D] that was repeated to [B, H, T, D]; `value` itself if it was not.
ValueId strip_repeat(const Graph& graph, ValueId value) {
  if (!ir::producer_as<ir::Reshape>(graph, value)) return value;
  const ValueId wide = ir::operand(graph, value, 0);
  if (!ir::producer_as<ir::Broadcast>(graph, wide)) return value;
  const ValueId narrow = ir::operand(graph, wide, 0);
  const Shape &to = graph.type(wide).shape, &from = graph.type(narrow).shape;
  const Shape& merged = graph.type(value).shape;
  if (to.size() != 5 || from.size() != 5 || merged.size() != 4) return value;
  const bool repeats = from[2] == 1 && from[0] == to[0] && from[1] == to[1] && from[3] == to[3] &&
                       from[4] == to[4] && merged[0] == to[0] && merged[1] == to[1] * to[2] &&
                       merged[2] == to[3] && merged[3] == to[4];
  return repeats ? narrow : value;
}

// Both or neither of k and v lose their repetition, so that they keep one number of heads.
Result<bool> share_heads(Site& site, ValueId& k, ValueId& v) {
  const ValueId k_heads = strip_repeat(site.graph, k), v_heads = strip_repeat(site.graph, v);
  if (k_heads == k || v_heads == v) return false;
  const Shape &a = site.graph.type(k_heads).shape, &b = site.graph.type(v_heads).shape;
  if (a[1] != b[1]) return false;
  const Shape k_shape{a[0], a[1], a[3], a[4]}, v_shape{b[0], b[1], b[3], b[4]};
  KILN_ASSIGN_OR_RETURN(k, reshape_to(site, k_heads, k_shape));
  KILN_ASSIGN_OR_RETURN(v, reshape_to(site, v_heads, v_shape));
  return true;
}

// A mask of the scores' rank as one that broadcasts to [B, H, S, T].
Result<ValueId> four_dim_mask(Site& site, ValueId mask, size_t rank) {
  const Shape& shape = site.graph.type(mask).shape;
  if (rank == 4 || shape.size() <= 2) return mask;
  return reshape_to(site, mask, four_dims(shape));
}

// Calls `each(first, count, merged)` for every leading axis of `scores`: the axes of `split` that
// it joins.
template <class Each>
void for_joined(const AttentionPattern& pattern, const Shape& scores, Each each) {
  const auto joined = *joined_axes(pattern.split, scores);
  size_t first = 0;
  for (size_t axis = 0; axis < joined.size(); ++axis) {
    each(first, joined[axis], axis);
    first += joined[axis];
  }
}

// `shape` with extents of 1 in front.
Shape of_rank(Shape shape, size_t rank) {
  shape.insert(shape.begin(), rank - shape.size(), 1);
  return shape;
}

// A mask of the scores as one of the scores with leading axes split.
Result<ValueId> split_mask(Site& site, ValueId mask, const AttentionPattern& pattern) {
  const Shape scores = site.graph.type(pattern.scores).shape;
  const Shape shape = of_rank(site.graph.type(mask).shape, scores.size());
  Shape split = pattern.split;
  for_joined(pattern, scores, [&](size_t first, size_t count, size_t axis) {
    if (shape[axis] == 1) std::fill_n(split.begin() + static_cast<std::ptrdiff_t>(first), count, 1);
  });
  std::copy(shape.end() - 2, shape.end(), split.end() - 2);
  return reshape_to(site, mask, split);
}

// The inverse: along each axis that is joined again it is repeated, or of extent 1.
Result<ValueId> merged_mask(Site& site, ValueId mask, const AttentionPattern& pattern) {
  Shape merged = site.graph.type(pattern.scores).shape;
  Shape wide = of_rank(site.graph.type(mask).shape, pattern.split.size());
  for_joined(pattern, merged, [&](size_t first, size_t count, size_t axis) {
    const auto begin = wide.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    if (std::all_of(begin, end, [](int64_t extent) { return extent == 1; })) {
      merged[axis] = 1;
    } else {
      std::copy_n(pattern.split.begin() + static_cast<std::ptrdiff_t>(first), count, begin);
    }
  });
  std::copy(wide.end() - 2, wide.end(), merged.end() - 2);
  KILN_ASSIGN_OR_RETURN(const ValueId narrow,
                        reshape_to(site, mask, of_rank(site.graph.type(mask).shape, wide.size())));
  KILN_ASSIGN_OR_RETURN(const ValueId repeated, site.broadcast_to(narrow, wide));
  return reshape_to(site, repeated, merged);
}

// The sum of what is added to the scores. Where a mask is for scores with their leading axes split
// they are added there, so that what repeats in the end is the sum.
Result<ValueId> sum_of_masks(Site& site, const std::vector<AddedMask>& added,
                             const AttentionPattern& pattern) {
  const bool split = std::any_of(added.begin(), added.end(), [](auto& one) { return one.split; });
  ValueId sum = kNoValue;
  for (const AddedMask& one : added) {
    ValueId mask = one.value;
    if (split && !one.split) {
      KILN_ASSIGN_OR_RETURN(mask, split_mask(site, mask, pattern));
    }
    if (sum != kNoValue) {
      KILN_ASSIGN_OR_RETURN(mask, site.emit(ir::Pointwise{ScalarFn::kAdd}, {sum, mask}));
    }
    sum = mask;
  }
  return split ? merged_mask(site, sum, pattern) : Result<ValueId>(sum);
}

// The fill where a condition masks the scores, else what is added to them.
Result<ValueId> with_condition(Site& site, ValueId sum, ValueId keep, double fill) {
  if (keep == kNoValue) return sum;
  const TensorType scalar{site.graph.type(sum).dtype, {}};
  KILN_ASSIGN_OR_RETURN(const ValueId low,
                        clean::add_doubles(site.graph, "masked_score", scalar, {&fill, 1}));
  return site.emit(ir::Pointwise{ScalarFn::kWhere}, {keep, sum, low});
}

Result<AttentionMask> build_mask(Site& site, const AttentionPattern& pattern) {
  const Shape scores = site.graph.type(pattern.scores).shape;
  const int64_t rows = scores[scores.size() - 2], columns = scores.back();
  AttentionMask mask, last;
  if (pattern.condition != kNoValue) {
    ValueId keep = pattern.condition;
    if (!pattern.condition_keeps) {
      KILN_ASSIGN_OR_RETURN(keep, site.emit(ir::Pointwise{ScalarFn::kNot}, {keep}));
    }
    mask = read_bool_mask(site.graph, keep, pattern.fill, rows, columns, pattern.nan_becomes_zero);
  }
  std::vector<AddedMask> added;  // what is more than nothing or a triangle
  for (const AddedMask& one : pattern.additive) {
    KILN_ASSIGN_OR_RETURN(const AttentionMask read,
                          read_additive_mask(site.graph, site.id(), one.value, rows, columns,
                                             pattern.nan_becomes_zero));
    mask.causal |= read.causal;
    mask.masked_row_zero |= read.masked_row_zero;
    if (read.value == kNoValue) continue;
    added.push_back(one);
    last = read;
  }
  if (added.size() == 1 && mask.value == kNoValue) added[0].value = last.value;
  if (!added.empty()) {
    KILN_ASSIGN_OR_RETURN(const ValueId sum, sum_of_masks(site, added, pattern));
    KILN_ASSIGN_OR_RETURN(mask.value, with_condition(site, sum, mask.value, pattern.fill));
  }
  if (mask.value != kNoValue) {
    KILN_ASSIGN_OR_RETURN(mask.value, four_dim_mask(site, mask.value, scores.size()));
  }
  return mask;
}

// The model's nodes from q, k, v and the masks to the root, which one node replaces.
std::vector<std::string> origins_between(const Graph& graph, NodeId root,
                                         const AttentionPattern& pattern) {
  std::set<ValueId> borders{pattern.q, pattern.k, pattern.v};
  for (const AddedMask& one : pattern.additive) borders.insert(one.value);
  if (pattern.condition != kNoValue) borders.insert(pattern.condition);
  std::vector<NodeId> pending{root};
  std::set<NodeId> seen{root};
  std::set<std::string> origins;
  while (!pending.empty()) {
    const ir::Node& node = graph.node(pending.back());
    pending.pop_back();
    origins.insert(node.origins.begin(), node.origins.end());
    for (ValueId input : node.inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer == ir::kNoNode || borders.count(input)) continue;
      if (seen.insert(producer).second) pending.push_back(producer);
    }
  }
  return {origins.begin(), origins.end()};
}

// The Attention node's result in the MatMul's type; kNoValue with a reason if the op cannot say it.
Result<ValueId> emit_attention(Site& site, const AttentionPattern& pattern, std::string& miss) {
  ValueId q = pattern.q, k = pattern.k, v = pattern.v;
  if (pattern.k_is_transposed) {
    KILN_ASSIGN_OR_RETURN(k, swap_last_two(site, k));
  }
  if (pattern.v_is_transposed) {
    KILN_ASSIGN_OR_RETURN(v, swap_last_two(site, v));
  }
  for (ValueId* operand : {&q, &k, &v}) {
    KILN_ASSIGN_OR_RETURN(*operand,
                          reshape_to(site, *operand, four_dims(site.graph.type(*operand).shape)));
  }
  const Shape result_shape = four_dims(site.type().shape);
  KILN_RETURN_IF_ERROR(share_heads(site, k, v));
  KILN_ASSIGN_OR_RETURN(const AttentionMask mask, build_mask(site, pattern));
  std::vector<ValueId> inputs{q, k, v};
  if (mask.value != kNoValue) inputs.push_back(mask.value);
  const ir::Attention op{pattern.scale, mask.causal, 0.0, mask.masked_row_zero};
  std::vector<TensorType> types;
  for (ValueId input : inputs) types.push_back(site.graph.type(input));
  const auto inferred = ir::infer_types(op, types);
  if (!inferred.ok() || inferred->front() != TensorType{site.type().dtype, result_shape}) {
    miss = inferred.ok() ? "the result would have another type" : inferred.error().message;
    return kNoValue;
  }
  KILN_ASSIGN_OR_RETURN(
      const NodeId fused,
      site.graph.add_node(site.node().name, origins_between(site.graph, site.id(), pattern), op,
                          std::move(inputs)));
  return reshape_to(site, site.graph.result(fused), site.type().shape);
}

Result<bool> fuse_one(Graph& graph, NodeId root, PassContext& context) {
  std::string miss;
  const auto pattern = match_attention(graph, root, miss);
  ValueId result = kNoValue;
  if (pattern) {
    Site site(graph, root);
    KILN_ASSIGN_OR_RETURN(result, emit_attention(site, *pattern, miss));
  }
  if (result == kNoValue) {
    if (!miss.empty()) {
      const ValueId probabilities = graph.node(root).inputs[0];
      context.near_misses.push_back({graph.node(graph.value(probabilities).producer).name,
                                     graph.node(root).name, "fuse-attention", miss});
    }
    return false;
  }
  graph.replace_uses(graph.result(root), result);
  clean::erase_with_producers(graph, root);
  return true;
}

}  // namespace

Result<bool> fuse_attention(Graph& graph, PassContext& context) {
  bool changed = false;
  for (NodeId id : graph.topological_order()) {
    if (graph.node(id).erased) continue;
    Result<bool> fused = fuse_one(graph, id, context);
    if (!fused.ok()) {
      return std::move(fused).error().context("node '" + graph.node(id).name + "'");
    }
    changed |= *fused;
  }
  // Layers share their masks, sums of constants; what a near miss has prepared in vain must not
  // stay.
  if (changed) {
    KILN_RETURN_IF_ERROR(clean::fold_constants(graph, context));
    KILN_RETURN_IF_ERROR(clean::merge_equal_nodes(graph, context));
  }
  KILN_ASSIGN_OR_RETURN(const bool removed, clean::remove_dead_code(graph, context));
  return changed || removed;
}

}  // namespace kiln::fuse
