#include "builder/clean/slice_constant_gathers.h"

#include "builder/clean/constant_value.h"
#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

// A longer list of indices is a lookup table in earnest.
constexpr int64_t kMaxIndices = 1 << 16;

struct Progression {
  int64_t start = 0, step = 1;
};

// The indices as start + i * step within [0, extent), if they are that.
std::optional<Progression> progression(const std::vector<double>& indices, int64_t extent) {
  std::vector<int64_t> wrapped;
  for (double index : indices) {
    const auto i = static_cast<int64_t>(index);
    wrapped.push_back(i < 0 ? i + extent : i);
    if (wrapped.back() < 0 || wrapped.back() >= extent) return std::nullopt;
  }
  Progression result{wrapped[0], wrapped.size() > 1 ? wrapped[1] - wrapped[0] : 1};
  if (result.step == 0) return std::nullopt;
  for (size_t i = 0; i < wrapped.size(); ++i) {
    if (wrapped[i] != result.start + static_cast<int64_t>(i) * result.step) return std::nullopt;
  }
  return result;
}

Result<ValueId> gather_to_slice(Site& site) {
  const auto* gather = site.op<ir::Gather>();
  if (!gather || !site.graph.value(site.input(1)).constant) return kNoValue;
  const TensorType& indices = site.graph.type(site.input(1));
  const int64_t count = indices.elements();
  if (count == 0 || count > kMaxIndices) return kNoValue;
  KILN_ASSIGN_OR_RETURN(const auto numbers, read_doubles(site.graph, site.input(1)));
  ir::Slice slice;
  slice.sizes = site.graph.type(site.input(0)).shape;
  slice.starts.assign(slice.sizes.size(), 0);
  slice.steps.assign(slice.sizes.size(), 1);
  const auto axis = static_cast<size_t>(gather->axis);
  const auto found = progression(numbers, slice.sizes[axis]);
  if (!found || count > slice.sizes[axis]) return kNoValue;
  slice.starts[axis] = found->start;
  slice.steps[axis] = found->step;
  slice.sizes[axis] = count;
  const Shape shape = slice.sizes;
  KILN_ASSIGN_OR_RETURN(const ValueId piece, site.emit(std::move(slice), {site.input(0)}));
  if (shape == site.type().shape) return piece;
  return site.emit(ir::Reshape{site.type().shape}, {piece});
}

// A gather_nd that takes every element in its place: exporters index with the position along each
// axis where a reshape would do.
Result<ValueId> gather_nd_to_reshape(Site& site) {
  const auto* opaque = site.op<ir::Opaque>();
  if (!opaque || opaque->operation.name != "gather_nd") return kNoValue;
  if (opaque->operation.get_int("batch_dims", 0) != 0) return kNoValue;
  if (!site.graph.value(site.input(1)).constant) return kNoValue;
  const Shape& shape = site.graph.type(site.input(0)).shape;
  const TensorType& indices = site.graph.type(site.input(1));
  if (site.type().elements() != element_count(shape) || indices.elements() == 0 ||
      indices.elements() > kMaxIndices * 8) {
    return kNoValue;
  }
  KILN_ASSIGN_OR_RETURN(const auto numbers, read_doubles(site.graph, site.input(1)));
  const auto depth = static_cast<size_t>(indices.shape.back());
  for (size_t i = 0; i < numbers.size(); i += depth) {
    int64_t flat = 0;
    for (size_t axis = 0; axis < depth; ++axis) {
      const auto index = static_cast<int64_t>(numbers[i + axis]);
      flat = flat * shape[axis] + (index < 0 ? index + shape[axis] : index);
    }
    if (flat != static_cast<int64_t>(i / depth)) return kNoValue;
  }
  return site.emit(ir::Reshape{site.type().shape}, {site.input(0)});
}

}  // namespace

Result<bool> slice_constant_gathers(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {gather_to_slice, gather_nd_to_reshape};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
