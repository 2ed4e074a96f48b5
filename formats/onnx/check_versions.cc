#include "formats/onnx/check_model.h"
#include "formats/onnx/schema.h"
#include "formats/onnx/walk_nodes.h"

namespace kiln::onnx {
namespace {

Result<> check_ir_version(int64_t version) {
  if (version < 1) {
    return Error{ErrorCode::kCorruptData,
                 "ir version is " + std::to_string(version) + ", expected 1 or more"};
  }
  if (version > newest_ir_version()) {
    return Error{ErrorCode::kVersionMismatch, "ir version is " + std::to_string(version) +
                                                  ", the newest known is " +
                                                  std::to_string(newest_ir_version())};
  }
  return Ok();
}

Result<> check_imports(const std::map<std::string, int64_t>& imports) {
  for (const auto& [domain, version] : imports) {
    const std::string name = domain.empty() ? "ai.onnx" : domain;
    if (version < 1) {
      return Error{ErrorCode::kCorruptData, "domain '" + name + "' is imported at opset " +
                                                std::to_string(version) + ", expected 1 or more"};
    }
    const auto newest = newest_opset(domain);
    if (newest && version > *newest) {
      return Error{ErrorCode::kVersionMismatch,
                   "domain '" + name + "' is imported at opset " + std::to_string(version) +
                       ", the newest known is " + std::to_string(*newest)};
    }
  }
  return Ok();
}

Result<> check_domains(const std::vector<Node>& nodes,
                       const std::map<std::string, int64_t>& imports) {
  return walk_nodes(nodes, [&](const Node& node) -> Result<> {
    if (imports.contains(node.domain)) return Ok();
    const std::string name = node.domain.empty() ? "ai.onnx" : node.domain;
    return Error{ErrorCode::kCorruptData, describe(node) + ": domain '" + name +
                                              "' is used and not among the opset imports"};
  });
}

}  // namespace

Result<> check_versions(const Model& model) {
  KILN_RETURN_IF_ERROR(check_ir_version(model.ir_version));
  if (model.opset_imports.empty()) {
    return Error{ErrorCode::kCorruptData, "there is no opset import, expected at least one"};
  }
  KILN_RETURN_IF_ERROR(check_imports(model.opset_imports));
  KILN_RETURN_IF_ERROR(check_domains(model.graph.nodes, model.opset_imports));
  for (const Function& function : model.functions) {
    const auto in_function = [&](Result<> result) -> Result<> {
      if (result.ok()) return result;
      return std::move(result).error().context("function '" + function.name + "'");
    };
    KILN_RETURN_IF_ERROR(in_function(check_imports(function.opset_imports)));
    KILN_RETURN_IF_ERROR(in_function(check_domains(function.nodes, function.opset_imports)));
  }
  return Ok();
}

}  // namespace kiln::onnx
