#include "builder/tactics/onednn_epilogue.h"

#include <algorithm>
#include <charconv>

#include "builder/tactics/epilogue_chain.h"

namespace kiln {
namespace {

using Kind = ChainStep::Kind;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

std::string with_numbers(const std::string& name, float a, float b) {
  char text[64];
  const auto first = std::to_chars(text, text + 30, a);
  *first.ptr = ':';
  const auto second = std::to_chars(first.ptr + 1, text + 62, b);
  return name + ":" + std::string(text, second.ptr);
}

std::string post_op(const ChainStep& step) {
  switch (step.kind) {
    case Kind::kBias:
      return "bias";
    case Kind::kAdd:
      return "add";
    case Kind::kRelu:
      return "relu";
    case Kind::kClip:
      return with_numbers("clip", step.low, step.high);
    case Kind::kSigmoid:
      return "sigmoid";
    case Kind::kTanh:
      return "tanh";
    case Kind::kSwish:
      return "swish";
    case Kind::kGelu:
      return "gelu_erf";
  }
  return "";
}

// What oneDNN reads: dense f32 operands, and a bias of rank 1.
Result<> check_operands(const ir::Graph& body, const EpilogueChain& chain) {
  if (chain.casts || chain.channels_last) return refuse("the body converts types or layouts");
  for (const ChainStep& step : chain.steps) {
    if (step.kind != Kind::kBias && step.kind != Kind::kAdd) continue;
    if (step.operand.channels_last) return refuse("the body converts types or layouts");
    if (body.type(step.operand.value).dtype != DType::kF32) return refuse("an addend is not f32");
    if (step.kind == Kind::kBias && body.type(step.operand.value).rank() != 1) {
      return refuse("the bias is no vector");
    }
  }
  const bool layouts = std::any_of(chain.operands.begin(), chain.operands.end(),
                                   [](const ChainOperand& o) { return o.channels_last; });
  return layouts ? Result<>(refuse("the body converts types or layouts")) : Ok();
}

}  // namespace

Result<Lowered> fuse_onednn_epilogue(const ir::Graph& body) {
  KILN_ASSIGN_OR_RETURN(const EpilogueChain chain, match_epilogue_chain(body));
  KILN_RETURN_IF_ERROR(check_operands(body, chain));
  if (body.outputs()[0] == body.result(chain.anchor)) return refuse("there is no epilogue");
  std::vector<ir::ValueId> inputs;
  for (const ChainOperand& operand : chain.operands) inputs.push_back(operand.value);
  std::vector<std::string> post_ops;
  for (const ChainStep& step : chain.steps) {
    post_ops.push_back(post_op(step));
    if (step.kind == Kind::kBias || step.kind == Kind::kAdd) inputs.push_back(step.operand.value);
  }
  Operation operation = *ir::operation_of(body.node(chain.anchor).op);
  operation.name = "onednn." + operation.name;
  operation.set("post_ops", post_ops);
  HostCall call{std::move(operation), {}, {{LocalBuffer::Kind::kOutput, 0}}};
  Lowered lowered;
  for (ir::ValueId id : inputs) {
    uint32_t number = 0;
    while (number < body.inputs().size() && body.inputs()[number] != id) ++number;
    if (number < body.inputs().size()) {
      call.inputs.push_back({LocalBuffer::Kind::kInput, number});
      continue;
    }
    call.inputs.push_back(
        {LocalBuffer::Kind::kConstant, static_cast<uint32_t>(lowered.constants.size())});
    lowered.constants.push_back({body.type(id), *body.value(id).constant});
  }
  lowered.steps.emplace_back(std::move(call));
  return lowered;
}

}  // namespace kiln
