#include "builder/ir/graph.h"
#include "builder/ir/opaque_ops.h"
#include "builder/ir/type_rules/type_rules.h"

namespace kiln::ir {
namespace {

Inferred infer(const Opaque& op, Types in) {
  const OpaqueOp* row = find_opaque_op(op.operation.name);
  if (!row) return reject("there is no operation '" + op.operation.name + "'");
  return row->infer(op.operation, in);
}

Inferred infer(const PluginCall& op, Types) {
  return reject("plugin '" + op.name + "' must be given its output types");
}

}  // namespace

Result<std::vector<TensorType>> infer_types(const Op& op, std::span<const TensorType> inputs) {
  return std::visit([&](const auto& alternative) { return infer(alternative, inputs); }, op);
}

}  // namespace kiln::ir
