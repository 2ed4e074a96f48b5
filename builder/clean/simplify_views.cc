#include "builder/clean/simplify_views.h"

#include <algorithm>

#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

bool all_equal(const std::vector<int64_t>& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [&](int64_t x) { return x == value; });
}

Result<ValueId> drop_whole_slice(Site& site) {
  const auto* slice = site.op<ir::Slice>();
  if (!slice || slice->sizes != site.graph.type(site.input(0)).shape) return kNoValue;
  for (size_t i = 0; i < slice->sizes.size(); ++i) {
    if (slice->sizes[i] > 1 && slice->steps[i] != 1) return kNoValue;
  }
  return site.input(0);
}

Result<ValueId> join_slices(Site& site) {
  const auto* outer = site.op<ir::Slice>();
  const auto* inner = outer ? ir::producer_as<ir::Slice>(site.graph, site.input(0)) : nullptr;
  if (!inner) return kNoValue;
  ir::Slice joined = *outer;
  for (size_t i = 0; i < joined.starts.size(); ++i) {
    joined.starts[i] = inner->starts[i] + outer->starts[i] * inner->steps[i];
    joined.steps[i] = outer->steps[i] * inner->steps[i];
    if (joined.sizes[i] <= 1) joined.steps[i] = 1;
    if (joined.sizes[i] == 0) joined.starts[i] = 0;
  }
  return site.emit(std::move(joined), {ir::operand(site.graph, site.input(0), 0)});
}

Result<ValueId> drop_empty_pad(Site& site) {
  const auto* pad = site.op<ir::Pad>();
  const bool empty = pad && all_equal(pad->before, 0) && all_equal(pad->after, 0);
  return empty ? site.input(0) : kNoValue;
}

Result<ValueId> simplify_broadcast(Site& site) {
  const auto* broadcast = site.op<ir::Broadcast>();
  if (!broadcast) return kNoValue;
  const ValueId x = site.input(0);
  if (site.graph.type(x).shape == broadcast->shape) return x;
  if (!ir::producer_as<ir::Broadcast>(site.graph, x)) return kNoValue;
  return site.emit(*broadcast, {ir::operand(site.graph, x, 0)});
}

Result<ValueId> drop_single_concat(Site& site) {
  const auto* concat = site.op<ir::Concat>();
  return concat && site.node().inputs.size() == 1 ? site.input(0) : kNoValue;
}

Result<ValueId> drop_empty_parts(Site& site) {
  const auto* concat = site.op<ir::Concat>();
  if (!concat) return kNoValue;
  std::vector<ValueId> parts;
  for (ValueId part : site.node().inputs) {
    if (site.graph.type(part).shape[static_cast<size_t>(concat->axis)] != 0) parts.push_back(part);
  }
  if (parts.empty() || parts.size() == site.node().inputs.size()) return kNoValue;
  return site.emit(ir::Concat{concat->axis}, std::move(parts));
}

Result<ValueId> join_concats(Site& site) {
  const auto* concat = site.op<ir::Concat>();
  if (!concat) return kNoValue;
  std::vector<ValueId> parts;
  for (ValueId part : site.node().inputs) {
    const auto* inner = ir::producer_as<ir::Concat>(site.graph, part);
    if (inner && inner->axis == concat->axis && ir::used_once(site.graph, part)) {
      const auto& pieces = site.graph.node(site.graph.value(part).producer).inputs;
      parts.insert(parts.end(), pieces.begin(), pieces.end());
    } else {
      parts.push_back(part);
    }
  }
  if (parts.size() == site.node().inputs.size()) return kNoValue;
  return site.emit(ir::Concat{concat->axis}, std::move(parts));
}

// A reduction over axes of extent 1 (or over none) combines nothing.
Result<ValueId> reduce_to_reshape(Site& site) {
  const auto* reduce = site.op<ir::Reduce>();
  if (!reduce) return kNoValue;
  const TensorType& in = site.graph.type(site.input(0));
  const bool combines = std::any_of(reduce->axes.begin(), reduce->axes.end(), [&](int64_t axis) {
    return in.shape[static_cast<size_t>(axis)] != 1;
  });
  if (combines || in.dtype != site.type().dtype) return kNoValue;
  return site.emit(ir::Reshape{site.type().shape}, {site.input(0)});
}

}  // namespace

Result<bool> simplify_views(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {drop_whole_slice,   join_slices,        drop_empty_pad,
                             simplify_broadcast, drop_single_concat, drop_empty_parts,
                             join_concats,       reduce_to_reshape};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
