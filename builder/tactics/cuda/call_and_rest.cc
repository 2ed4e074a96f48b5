#include "builder/tactics/cuda/call_and_rest.h"

#include <algorithm>

namespace kiln {
namespace {

LocalBuffer add_temporary(TensorType type, Lowered& lowered) {
  lowered.temporaries.push_back(std::move(type));
  return {LocalBuffer::Kind::kTemporary, static_cast<uint32_t>(lowered.temporaries.size() - 1)};
}

LocalBuffer add_constant(HostTensor constant, Lowered& lowered) {
  lowered.constants.push_back(std::move(constant));
  return {LocalBuffer::Kind::kConstant, static_cast<uint32_t>(lowered.constants.size() - 1)};
}

HostCall loop_call(const loop::LoopKernel& kernel) {
  return {Operation{"loop", {}}.set("kernel", loop::encode(kernel)), {}, {}};
}

template <class Step>
void add_and_rest(Step step, const ir::Graph& body, const SplitRest& rest, Lowered& lowered) {
  const LocalBuffer between = add_temporary(rest.anchor_result, lowered);
  step.outputs.push_back(between);
  HostCall loop = loop_call(rest.kernel);
  for (size_t i = 0; i < rest.inputs.size(); ++i) {
    loop.inputs.push_back(i == rest.anchor_input ? between
                                                 : buffer_of(body, rest.inputs[i], lowered));
  }
  for (uint32_t i = 0; i < body.outputs().size(); ++i) {
    loop.outputs.push_back({LocalBuffer::Kind::kOutput, i});
  }
  lowered.steps.emplace_back(std::move(step));
  lowered.steps.emplace_back(std::move(loop));
}

}  // namespace

LocalBuffer buffer_of(const ir::Graph& body, ir::ValueId value, Lowered& lowered) {
  const auto inputs = body.inputs();
  const auto found = std::find(inputs.begin(), inputs.end(), value);
  if (found != inputs.end()) {
    return {LocalBuffer::Kind::kInput, static_cast<uint32_t>(found - inputs.begin())};
  }
  const ir::Value& constant = body.value(value);
  return add_constant({constant.type, *constant.constant}, lowered);
}

Result<HostTensor> known_operand(const TacticQuery& query, ir::ValueId value) {
  const ir::Graph& body = *query.region.body;
  const ir::Value& operand = body.value(value);
  if (operand.constant) return HostTensor{operand.type, *operand.constant};
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    if (body.inputs()[i] == value && query.constants[i]) {
      return HostTensor{operand.type, *query.constants[i]};
    }
  }
  return Error{ErrorCode::kUnsupported, "its weights are computed"};
}

void add_call(LibraryCall call, Lowered& lowered) {
  call.outputs.push_back({LocalBuffer::Kind::kOutput, 0});
  lowered.steps.emplace_back(std::move(call));
}

void add_call_and_rest(LibraryCall call, const ir::Graph& body, const SplitRest& rest,
                       Lowered& lowered) {
  add_and_rest(std::move(call), body, rest, lowered);
}

void add_launch_and_rest(LocalLaunch launch, const ir::Graph& body, const SplitRest& rest,
                         Lowered& lowered) {
  add_and_rest(std::move(launch), body, rest, lowered);
}

void add_call_and_zeros(LibraryCall call, const ir::Graph& body, const MaskedRows& rows,
                        Lowered& lowered) {
  const LocalBuffer result = add_temporary(body.type(body.outputs()[0]), lowered);
  const LocalBuffer kept = add_temporary(rows.kept, lowered);
  call.outputs.push_back(result);
  HostCall find = loop_call(rows.find), zero = loop_call(rows.zero);
  for (ir::ValueId input : rows.inputs) find.inputs.push_back(buffer_of(body, input, lowered));
  for (const HostTensor& constant : rows.constants) {
    find.inputs.push_back(add_constant(constant, lowered));
  }
  find.outputs = {kept};
  zero.inputs = {result, kept};
  zero.outputs = {{LocalBuffer::Kind::kOutput, 0}};
  lowered.steps.emplace_back(std::move(call));
  lowered.steps.emplace_back(std::move(find));
  lowered.steps.emplace_back(std::move(zero));
}

}  // namespace kiln
