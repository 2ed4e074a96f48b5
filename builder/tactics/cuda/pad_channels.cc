#include "builder/tactics/cuda/pad_channels.h"

#include <cstring>

#include "builder/codegen/lower_loop.h"

namespace kiln {
namespace {

constexpr int64_t kTogether = 8;  // elements of 16 bits that engines load at a time: 16 bytes

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

Result<> check(const ir::Graph& body, const EpilogueChain& chain) {
  const auto* conv = std::get_if<ir::Conv>(&body.node(chain.anchor).op);
  if (conv == nullptr || conv->groups > 1) return refuse("only plain convolutions are widened");
  for (const ChainOperand& operand : chain.operands) {
    if (!operand.channels_last || bits_of(body.type(operand.value).dtype) != 16) {
      return refuse("its operands are not of 16 bits with their channels last");
    }
  }
  if (body.type(chain.operands[0].value).shape.back() % kTogether == 0) {
    return refuse("its channels fill vectors");
  }
  for (const ChainStep& step : chain.steps) {
    if (step.kind == ChainStep::Kind::kAdd && step.operand.value == chain.operands[0].value) {
      return refuse("its input is its residual as well");
    }
  }
  return Ok();
}

// Channels are dim 1 and lie next to each other.
void widen(CudnnTensor& tensor, int64_t channels) {
  const int64_t before = tensor.dims[1];
  tensor.dims[1] = channels;
  for (size_t d = 0; d < tensor.strides.size(); ++d) {
    if (d != 1) tensor.strides[d] = tensor.strides[d] / before * channels;
  }
}

Result<loop::LoopKernel> pad_kernel(const TensorType& type, int64_t more) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_input("", type);
  const TensorType scalar{type.dtype, {}};
  const std::vector<std::byte> zero(static_cast<size_t>(scalar.bytes()));
  ir::Pad pad{Shape(type.shape.size(), 0), Shape(type.shape.size(), 0)};
  pad.after.back() = more;
  KILN_ASSIGN_OR_RETURN(
      const ir::NodeId node,
      graph.add_node("pad", {}, pad, {x, graph.add_constant("", scalar, SharedBytes::take(zero))}));
  graph.mark_output(graph.result(node));
  return lower_to_loop(graph);
}

}  // namespace

Result<PaddedConv> pad_channels(const ir::Graph& body, const EpilogueChain& chain) {
  KILN_RETURN_IF_ERROR(check(body, chain));
  PaddedConv padded;
  KILN_ASSIGN_OR_RETURN(padded.conv, fused_problem(body, chain, EpilogueOrder::kAsWritten));
  padded.wide = body.type(chain.operands[0].value);
  const int64_t channels = padded.wide.shape.back();
  const int64_t wide = (channels + kTogether - 1) / kTogether * kTogether;
  KILN_ASSIGN_OR_RETURN(padded.pad, pad_kernel(padded.wide, wide - channels));
  padded.wide.shape.back() = wide;
  const auto& convolution = std::get<CudnnConvolution>(padded.conv.problem.operations.front());
  padded.x = convolution.x;
  padded.w = convolution.w;
  for (const int64_t number : {padded.x, padded.w}) {
    widen(padded.conv.problem.tensors[static_cast<size_t>(number)], wide);
  }
  return padded;
}

SharedBytes widen_rows(const SharedBytes& bytes, size_t from, size_t to) {
  std::vector<std::byte> wide(bytes.size() / from * to);
  for (size_t row = 0; row * from < bytes.size(); ++row) {
    std::memcpy(wide.data() + row * to, bytes.data() + row * from, from);
  }
  return SharedBytes::take(std::move(wide));
}

}  // namespace kiln
