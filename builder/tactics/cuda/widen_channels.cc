#include "builder/tactics/cuda/widen_channels.h"

#include <algorithm>

#include "builder/codegen/lower_loop.h"

namespace kiln {
namespace {

constexpr int64_t kTogether = 8;   // elements of 16 bits that engines load at a time: 16 bytes
constexpr int64_t kMostWide = 64;  // channels of a block

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

// How an operand that is stored N, spatial..., C is cut. Every spatial axis gets zeros in front, is
// cut into `counts` blocks of `side` cells (zeros behind where it ends before them), and the cells
// of a block, each of `channels`, lie one after another.
struct Blocks {
  int64_t side = 1;
  Shape counts, before;
  int64_t channels = 0;
};

class Cutting {
 public:
  Cutting(const TensorType& stored, const Blocks& blocks) : blocks_(blocks), type_(stored) {
    at_ = graph_.add_input("", stored);
  }

  Result<ir::Graph> cut() {
    KILN_RETURN_IF_ERROR(fit());
    if (blocks_.side > 1) KILN_RETURN_IF_ERROR(regroup());
    graph_.mark_output(at_);
    return std::move(graph_);
  }

 private:
  Result<> append(ir::Op op, std::vector<ir::ValueId> more = {}) {
    std::vector<ir::ValueId> inputs = {at_};
    inputs.insert(inputs.end(), more.begin(), more.end());
    KILN_ASSIGN_OR_RETURN(const ir::NodeId node,
                          graph_.add_node("", {}, std::move(op), std::move(inputs)));
    at_ = graph_.result(node);
    return Ok();
  }

  // To exactly what the blocks hold: what lies behind them is never read.
  Result<> fit() {
    const Shape& shape = type_.shape;
    const Shape none(shape.size(), 0);
    ir::Slice slice{none, shape, Shape(shape.size(), 1)};
    ir::Pad pad{none, none};
    for (size_t i = 0; i < blocks_.counts.size(); ++i) {
      const int64_t held = blocks_.counts[i] * blocks_.side - blocks_.before[i];
      if (held < 1) return refuse("its blocks hold nothing but padding");
      slice.sizes[i + 1] = std::min(shape[i + 1], held);
      pad.before[i + 1] = blocks_.before[i];
      pad.after[i + 1] = held - slice.sizes[i + 1];
    }
    pad.after.back() = blocks_.channels - shape.back();
    if (slice.sizes != shape) KILN_RETURN_IF_ERROR(append(slice));
    const TensorType scalar{type_.dtype, {}};
    std::vector<std::byte> zero(static_cast<size_t>(scalar.bytes()));
    return append(pad, {graph_.add_constant("", scalar, SharedBytes::take(std::move(zero)))});
  }

  Result<> regroup() {
    const size_t spatial = blocks_.counts.size();
    Shape apart = {type_.shape[0]}, together = apart;
    std::vector<int64_t> perm = {0};
    int64_t channels = blocks_.channels;
    for (size_t i = 0; i < spatial; ++i) {
      apart.insert(apart.end(), {blocks_.counts[i], blocks_.side});
      together.push_back(blocks_.counts[i]);
      perm.push_back(static_cast<int64_t>(2 * i + 1));
      channels *= blocks_.side;
    }
    for (size_t i = 0; i < spatial; ++i) perm.push_back(static_cast<int64_t>(2 * i + 2));
    perm.push_back(static_cast<int64_t>(2 * spatial + 1));
    apart.push_back(blocks_.channels);
    together.push_back(channels);
    KILN_RETURN_IF_ERROR(append(ir::Reshape{apart}));
    KILN_RETURN_IF_ERROR(append(ir::Transpose{perm}));
    return append(ir::Reshape{together});
  }

  const Blocks& blocks_;
  TensorType type_;
  ir::Graph graph_;
  ir::ValueId at_{};
};

// As cudnn_conv.h has it: a 1-D convolution is a 2-D one of height 1.
void describe(CudnnTensor& tensor, Shape stored) {
  if (stored.size() == 3) stored.insert(stored.begin() + 1, 1);
  tensor.dims = stored;
  tensor.strides = row_major_strides(stored);
  for (Shape* list : {&tensor.dims, &tensor.strides}) {
    std::rotate(list->begin() + 1, list->end() - 1, list->end());
  }
}

CudnnConvolution& convolution_of(WideConv& made) {
  return std::get<CudnnConvolution>(made.conv.problem.operations.front());
}

Result<WideConv> widen(const ir::Graph& body, const EpilogueChain& chain, const Blocks& x,
                       const Blocks& w) {
  WideConv made;
  KILN_ASSIGN_OR_RETURN(made.conv, fused_problem(body, chain, EpilogueOrder::kAsWritten));
  const TensorType &image = body.type(chain.operands[0].value),
                   &filters = body.type(chain.operands[1].value);
  KILN_ASSIGN_OR_RETURN(const ir::Graph cut, Cutting(image, x).cut());
  KILN_ASSIGN_OR_RETURN(made.widen, lower_to_loop(cut));
  KILN_ASSIGN_OR_RETURN(made.widen_weights, Cutting(filters, w).cut());
  made.wide = cut.type(cut.outputs()[0]);
  made.x = convolution_of(made).x;
  made.w = convolution_of(made).w;
  const auto tensor = [&](int64_t number) -> CudnnTensor& {
    return made.conv.problem.tensors[static_cast<size_t>(number)];
  };
  describe(tensor(made.x), made.wide.shape);
  describe(tensor(made.w), made.widen_weights.type(made.widen_weights.outputs()[0]).shape);
  return made;
}

Shape spatial_of(const Shape& stored) { return {stored.begin() + 1, stored.end() - 1}; }

// The stride that all axes share, above 1; the error says why there is none to fold.
Result<int64_t> common_stride(const ir::Conv& conv) {
  const int64_t stride = conv.strides[0];
  const auto are = [](const std::vector<int64_t>& numbers, int64_t wanted) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == wanted; });
  };
  if (stride == 1 || !are(conv.strides, stride)) return refuse("its axes have no stride in common");
  if (!are(conv.dilations, 1)) return refuse("its windows have gaps");
  return stride;
}

}  // namespace

Result<WideConv> pad_channels(const ir::Graph& body, const EpilogueChain& chain) {
  KILN_RETURN_IF_ERROR(check(body, chain));
  const Shape &x = body.type(chain.operands[0].value).shape,
              &w = body.type(chain.operands[1].value).shape;
  const int64_t wide = (x.back() + kTogether - 1) / kTogether * kTogether;
  const Shape none(x.size() - 2, 0);
  return widen(body, chain, {1, spatial_of(x), none, wide}, {1, spatial_of(w), none, wide});
}

Result<WideConv> fold_strides(const ir::Graph& body, const EpilogueChain& chain) {
  KILN_RETURN_IF_ERROR(check(body, chain));
  const auto& conv = std::get<ir::Conv>(body.node(chain.anchor).op);
  KILN_ASSIGN_OR_RETURN(const int64_t side, common_stride(conv));
  const Shape &x = body.type(chain.operands[0].value).shape,
              &w = body.type(chain.operands[1].value).shape,
              &result = body.type(body.result(chain.anchor)).shape;
  const Shape none(x.size() - 2, 0);
  if (x.back() > kTogether || side > kMostWide) return refuse("its blocks have many channels");
  int64_t cells = 1, channels = x.back();
  for (size_t i = 0; i < none.size(); ++i) cells *= side;
  while (cells * channels % kTogether != 0) ++channels;
  if (cells * channels > kMostWide) return refuse("its blocks have many channels");
  Blocks image{side, {}, conv.pads_begin, channels}, filter{side, {}, none, channels};
  for (size_t i = 0; i < none.size(); ++i) {
    filter.counts.push_back((w[i + 1] + side - 1) / side);
    image.counts.push_back(result[i + 2] - 1 + filter.counts.back());
  }
  KILN_ASSIGN_OR_RETURN(WideConv made, widen(body, chain, image, filter));
  CudnnConvolution& convolution = convolution_of(made);
  std::fill(convolution.strides.begin(), convolution.strides.end(), 1);
  for (auto* pads : {&convolution.pads_begin, &convolution.pads_end}) {
    std::fill(pads->begin(), pads->end(), 0);
  }
  return made;
}

}  // namespace kiln
