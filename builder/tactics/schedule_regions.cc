#include "builder/tactics/schedule_regions.h"

#include "builder/cuda/build_tools.h"
#include "builder/tactics/lower_grouped.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::NodeId;
using Kind = ir::Region::Kind;

Kind kind_of(const ir::Op& op) {
  if (is_loop_op(op)) return Kind::kLoop;
  if (std::holds_alternative<ir::MatMul>(op)) return Kind::kContraction;
  if (std::holds_alternative<ir::Conv>(op) || std::holds_alternative<ir::ConvTranspose>(op)) {
    return Kind::kConvolution;
  }
  if (std::holds_alternative<ir::Attention>(op)) return Kind::kAttention;
  return std::holds_alternative<ir::PluginCall>(op) ? Kind::kPlugin : Kind::kOpaque;
}

// Replaces a region by one region for each operation of its body.
void take_apart(Graph& graph, NodeId id) {
  const ir::Region region = std::get<ir::Region>(graph.node(id).op);
  const std::vector<ir::ValueId> arguments = graph.node(id).inputs;
  const size_t first = graph.node_count();
  const auto outputs = ir::inline_graph(graph, *region.body, arguments);
  const auto old_outputs = graph.node(id).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) graph.replace_uses(old_outputs[i], outputs[i]);
  graph.erase(id);
  const size_t last = graph.node_count();
  for (size_t i = first; i < last; ++i) {
    const NodeId inner{static_cast<uint32_t>(i)};
    const ir::Node node = graph.node(inner);
    const ir::Extracted part = ir::extract(graph, std::span(&inner, 1), node.outputs);
    ir::Region single{kind_of(node.op), std::make_shared<Graph>(part.graph), node.origins, ""};
    std::vector<TensorType> types;
    for (ir::ValueId output : node.outputs) types.push_back(graph.type(output));
    const NodeId made =
        graph.add_typed_node(node.name, node.origins, std::move(single), part.inputs, types);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      graph.replace_uses(node.outputs[k], graph.node(made).outputs[k]);
    }
    graph.erase(inner);
  }
  graph.compact();
}

std::vector<std::string> type_texts(const Graph& graph, const ir::Node& node) {
  std::vector<std::string> texts;
  for (ir::ValueId id : node.inputs) texts.push_back(to_string(graph.type(id)));
  texts.emplace_back("->");
  for (ir::ValueId id : node.outputs) texts.push_back(to_string(graph.type(id)));
  return texts;
}

void describe(const Graph& graph, const ir::Node& node, const ir::Region& region,
              report::Region& record) {
  record.name = region_name(region, node.name);
  record.origins = region.origins;
  record.kind = ir::to_string(region.kind);
  record.rule = region.rule;
  record.types = type_texts(graph, node);
}

// Adds the region's selection to `result`. False: no tactic was right, `error` says why.
Result<> schedule_one(const Graph& graph, NodeId id, const DeviceInfo& device,
                      std::span<const Plugin> plugins, SelectionContext& context,
                      Scheduled& result) {
  const ir::Node& node = graph.node(id);
  const auto& region = std::get<ir::Region>(node.op);
  report::Region record;
  ScheduledRegion scheduled{id, region_name(region, node.name), is_alias(region), {}};
  TacticKey winner;
  if (!scheduled.alias) {
    TacticQuery query = query_of(graph, id, device, plugins);
    query.cuda = context.cuda;
    auto selection = select_tactic(query, context);
    if (!selection.ok()) {
      return std::move(selection).error().context("region '" + scheduled.name + "'");
    }
    if (!*selection) {
      result.missing.push_back(scheduled.name);
      return Ok();
    }
    scheduled.lowered = std::move((*selection)->lowered);
    winner = std::move((*selection)->winner);
    record = std::move((*selection)->record);
  }
  describe(graph, node, region, record);
  result.schedule.regions.push_back(std::move(scheduled));
  result.records.push_back(std::move(record));
  result.winners.push_back(std::move(winner));
  return Ok();
}

// Where earlier builds have chosen, compiling is what is left to do.
void compile_known_winners(const Graph& graph, const DeviceInfo& device,
                           std::span<const Plugin> plugins, SelectionContext& context) {
  if (context.cuda == nullptr) return;
  compile_ahead(*context.cuda, device.threads, [&] {
    for (NodeId id : graph.topological_order()) {
      if (is_alias(std::get<ir::Region>(graph.node(id).op))) continue;
      TacticQuery query = query_of(graph, id, device, plugins);
      query.cuda = context.cuda;
      lower_known_winner(query, context);
    }
  });
}

void share_time(std::vector<report::Region>& records) {
  double sum = 0;
  const auto time = [](const report::Region& record) {
    return record.chosen < 0 ? 0 : record.candidates[static_cast<size_t>(record.chosen)].median_us;
  };
  for (const auto& record : records) sum += time(record);
  for (auto& record : records) record.time_share = sum > 0 ? time(record) / sum : 0;
}

}  // namespace

std::string region_name(const ir::Region& region, const std::string& fallback) {
  constexpr size_t kShown = 3;
  std::string name;
  for (size_t i = 0; i < region.origins.size() && i < kShown; ++i) {
    name += (i ? " + " : "") + region.origins[i];
  }
  if (region.origins.size() > kShown) {
    name += " + " + std::to_string(region.origins.size() - kShown) + " more";
  }
  return name.empty() ? fallback : name;
}

TacticQuery query_of(const Graph& graph, NodeId id, const DeviceInfo& device,
                     std::span<const Plugin> plugins) {
  const ir::Node& node = graph.node(id);
  TacticQuery query{std::get<ir::Region>(node.op), {}, {}, {}, device, plugins};
  for (ir::ValueId input : node.inputs) {
    query.inputs.push_back(graph.type(input));
    query.constants.push_back(graph.value(input).constant);
  }
  for (ir::ValueId output : node.outputs) query.outputs.push_back(graph.type(output));
  return query;
}

Result<Scheduled> schedule_regions(Graph graph, const ShapePoint& point, const DeviceInfo& device,
                                   std::span<const Plugin> plugins, SelectionContext& context,
                                   const SchedulingProgress& progress) {
  std::vector<std::string> notes;
  compile_known_winners(graph, device, plugins, context);
  for (;;) {
    Scheduled result;
    const auto order = graph.topological_order();
    std::optional<NodeId> failed;
    for (size_t i = 0; i < order.size() && !failed; ++i) {
      auto done = schedule_one(graph, order[i], device, plugins, context, result);
      if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(order.size()));
      if (done.ok()) continue;
      const auto& body = *std::get<ir::Region>(graph.node(order[i]).op).body;
      if (done.error().code != ErrorCode::kVerification || body.node_count() < 2) {
        return std::move(done).error();
      }
      notes.push_back(done.error().message + "; taken apart into single operations");
      failed = order[i];
    }
    if (!result.missing.empty()) return result;
    if (failed) {
      take_apart(graph, *failed);
      continue;
    }
    share_time(result.records);
    result.schedule.point = point;
    result.schedule.graph = std::move(graph);
    result.notes = std::move(notes);
    return result;
  }
}

}  // namespace kiln
