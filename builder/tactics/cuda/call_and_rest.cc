#include "builder/tactics/cuda/call_and_rest.h"

#include <algorithm>

namespace kiln {

LocalBuffer buffer_of(const ir::Graph& body, ir::ValueId value, Lowered& lowered) {
  const auto inputs = body.inputs();
  const auto found = std::find(inputs.begin(), inputs.end(), value);
  if (found != inputs.end()) {
    return {LocalBuffer::Kind::kInput, static_cast<uint32_t>(found - inputs.begin())};
  }
  const ir::Value& constant = body.value(value);
  lowered.constants.push_back({constant.type, *constant.constant});
  return {LocalBuffer::Kind::kConstant, static_cast<uint32_t>(lowered.constants.size() - 1)};
}

void add_call(LibraryCall call, Lowered& lowered) {
  call.outputs.push_back({LocalBuffer::Kind::kOutput, 0});
  lowered.steps.emplace_back(std::move(call));
}

void add_call_and_rest(LibraryCall call, const ir::Graph& body, const SplitRest& rest,
                       Lowered& lowered) {
  const LocalBuffer between = {LocalBuffer::Kind::kTemporary,
                               static_cast<uint32_t>(lowered.temporaries.size())};
  lowered.temporaries.push_back(rest.anchor_result);
  call.outputs.push_back(between);
  HostCall loop{Operation{"loop", {}}.set("kernel", loop::encode(rest.kernel)), {}, {}};
  for (size_t i = 0; i < rest.inputs.size(); ++i) {
    loop.inputs.push_back(i == rest.anchor_input ? between
                                                 : buffer_of(body, rest.inputs[i], lowered));
  }
  for (uint32_t i = 0; i < body.outputs().size(); ++i) {
    loop.outputs.push_back({LocalBuffer::Kind::kOutput, i});
  }
  lowered.steps.emplace_back(std::move(call));
  lowered.steps.emplace_back(std::move(loop));
}

}  // namespace kiln
