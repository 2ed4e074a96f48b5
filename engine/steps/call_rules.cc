#include "engine/steps/call_rules.h"

#include <string>

#include "formats/engine_file/check_plan.h"

namespace kiln {
namespace {

Error overlaps(const std::string& a, const std::string& b) {
  return {ErrorCode::kCorruptData, a + " overlaps " + b};
}

std::string numbered(const char* kind, size_t i) { return kind + (" " + std::to_string(i)); }

}  // namespace

std::vector<TensorType> types_of(const std::vector<plan::Operand>& operands) {
  std::vector<TensorType> types;
  types.reserve(operands.size());
  for (const plan::Operand& operand : operands) types.push_back(operand.type);
  return types;
}

Result<> check_overlaps(const std::vector<plan::Operand>& inputs,
                        const std::vector<plan::Operand>& outputs, const plan::BufferRef& workspace,
                        const std::function<bool(size_t)>& in_place) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (plan::overlap(inputs[i].buffer, workspace)) {
      return overlaps(numbered("input", i), "the workspace");
    }
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const plan::BufferRef& output = outputs[o].buffer;
    if (plan::overlap(output, workspace)) return overlaps(numbered("output", o), "the workspace");
    for (size_t other = 0; other < o; ++other) {
      if (plan::overlap(output, outputs[other].buffer)) {
        return overlaps(numbered("output", o), numbered("output", other));
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!plan::overlap(output, inputs[i].buffer)) continue;
      if (o == 0 && output == inputs[i].buffer && in_place(i)) continue;
      return overlaps(numbered("output", o), numbered("input", i));
    }
  }
  return Ok();
}

Result<> check_workspace(const plan::BufferRef& workspace, uint64_t needed_bytes) {
  if (workspace.bytes >= needed_bytes) return Ok();
  return Error{ErrorCode::kCorruptData, "workspace has " + std::to_string(workspace.bytes) +
                                            " bytes, the kernel needs " +
                                            std::to_string(needed_bytes)};
}

}  // namespace kiln
