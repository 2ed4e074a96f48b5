#include "builder/import/onnx/import.h"

#include <algorithm>

#include "builder/import/onnx/importer.h"

namespace kiln::onnx_import {
namespace {

constexpr size_t kMaxListed = 20;

// Drops nodes whose results nobody reads, such as shape arithmetic after it was evaluated.
void drop_unused(ir::Graph& graph) {
  auto order = graph.topological_order();
  std::reverse(order.begin(), order.end());
  for (ir::NodeId id : order) {
    const auto& outputs = graph.node(id).outputs;
    const bool unused = std::all_of(outputs.begin(), outputs.end(), [&](ValueId value) {
      return graph.value(value).uses.empty() && !graph.is_output(value);
    });
    if (unused) graph.erase(id);
  }
  graph.compact();
}

std::string where(const onnx::Model& model) {
  return "import '" + (model.path.empty() ? "model" : model.path.filename().string()) + "'";
}

Error all_problems(const std::vector<NodeProblem>& problems) {
  if (problems.size() == 1) return problems[0].error;
  std::string text = std::to_string(problems.size()) + " nodes cannot be imported";
  for (size_t i = 0; i < problems.size() && i < kMaxListed; ++i) {
    text += "; " + problems[i].error.message;
  }
  if (problems.size() > kMaxListed) {
    text += "; and " + std::to_string(problems.size() - kMaxListed) + " more (--check lists all)";
  }
  return {problems[0].error.code, std::move(text)};
}

}  // namespace

Result<Imported> import_onnx(const onnx::Model& model, const ShapePoint& point,
                             const ImportOptions& options) {
  Importer importer(model, point, options);
  auto result = importer.run();
  // Nodes first: an output that is wrong because of a node's problem is no news.
  if (!importer.problems().empty()) {
    return all_problems(importer.problems()).context(where(model));
  }
  if (!result.ok()) return std::move(result).error().context(where(model));
  drop_unused(importer.graph());
  return Imported{std::move(importer.graph()), std::move(importer.notes())};
}

Result<ImportCheck> check_onnx(const onnx::Model& model, const ShapePoint& point,
                               const ImportOptions& options) {
  Importer importer(model, point, options);
  auto result = importer.run();
  if (!result.ok() && importer.problems().empty()) {
    return std::move(result).error().context(where(model));
  }
  ImportCheck check;
  for (const NodeProblem& problem : importer.problems()) {
    check.unsupported.push_back({problem.node, problem.op_type, problem.error.message});
  }
  check.needed_values = importer.needed_values();
  return check;
}

}  // namespace kiln::onnx_import
