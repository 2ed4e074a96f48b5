#include "builder/precision/choose_precision.h"

#include <algorithm>

#include "builder/precision/retype_graph.h"

namespace kiln::precision {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

// By node: why the quality search keeps it in f32.
std::vector<std::string> kept_regions(const Graph& graph, const PassOptions& options) {
  std::vector<std::string> keep(graph.node_count());
  for (NodeId id : graph.topological_order()) {
    const auto found = options.quality.find(graph.node(id).name);
    if (found != options.quality.end()) keep[index_of(id)] = found->second.keep;
  }
  return keep;
}

double damage_of(const std::string& region, const PassOptions& options) {
  const auto found = options.quality.find(region);
  return found == options.quality.end() ? -1 : found->second.damage;
}

void record(const Graph& graph, const Storage& storage, DType narrow, PassContext& context) {
  for (NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    const bool has_f32 = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      return graph.type(output).dtype == DType::kF32;
    });
    if (!has_f32) continue;
    std::string reason = storage.reasons[index_of(id)];
    const bool realised = is_narrowed(graph, storage, id, narrow);
    if (!realised && reason.empty()) reason = "an output of the model keeps its type";
    context.precision.push_back({node.name, narrow, realised ? narrow : DType::kF32,
                                 realised ? "" : reason, damage_of(node.name, context.options)});
  }
}

}  // namespace

DType narrow_dtype(Precision precision) {
  if (precision == Precision::kFp16) return DType::kF16;
  return precision == Precision::kBf16 ? DType::kBF16 : DType::kF32;
}

Result<bool> choose_precision(Graph& graph, PassContext& context) {
  const DType narrow = narrow_dtype(context.options.precision);
  const DType io = context.options.io_fp16 ? DType::kF16 : DType::kF32;
  const StorageWish wish{narrow, io, kept_regions(graph, context.options)};
  const Storage storage = choose_storage(graph, wish);
  record(graph, storage, narrow, context);
  if (narrow == DType::kF32 && io == DType::kF32) return false;
  ConvertedConstants own;
  ConvertedConstants& constants = context.constants ? *context.constants : own;
  KILN_ASSIGN_OR_RETURN(Graph rewritten, retype_graph(graph, storage, narrow, constants));
  const bool changed = rewritten.fingerprint() != graph.fingerprint();
  graph = std::move(rewritten);
  return changed;
}

}  // namespace kiln::precision
