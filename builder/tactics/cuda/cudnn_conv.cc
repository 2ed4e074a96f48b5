#include "builder/tactics/cuda/cudnn_conv.h"

#include <algorithm>

#include "builder/tactics/cuda/cudnn_answers.h"
#include "builder/tactics/cuda/cudnn_call.h"

namespace kiln {
namespace {

using Kind = ChainStep::Kind;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

// Dims N, C, spatial... of a tensor that is stored in another order of axes.
struct View {
  Shape dims, strides;
};

// A 1-D convolution is a 2-D one of height 1.
View view_of(const Shape& stored, bool channels_last) {
  const Shape row_major = row_major_strides(stored);
  View view;
  const size_t rank = stored.size();
  std::vector<size_t> order(rank);
  for (size_t i = 0; i < rank; ++i) {
    order[i] = channels_last && i > 0 ? (i == 1 ? rank - 1 : i - 1) : i;
  }
  for (size_t axis : order) {
    view.dims.push_back(stored[axis]);
    view.strides.push_back(row_major[axis]);
  }
  if (rank == 3) {
    view.strides.insert(view.strides.begin() + 2, view.dims[2] * view.strides[2]);
    view.dims.insert(view.dims.begin() + 2, 1);
  }
  return view;
}

// One value a channel, for a result of `rank` dims.
View bias_view(int64_t channels, size_t rank, bool channels_last) {
  View view{Shape(rank, 1), Shape(rank, channels_last ? channels : 1)};
  view.dims[1] = channels;
  view.strides[0] = channels;
  view.strides[1] = 1;
  return view;
}

struct Geometry {
  std::vector<int64_t> strides, dilations, pads_begin, pads_end;
  bool transposed = false;
};

Result<Geometry> geometry_of(const ir::Op& op) {
  Geometry geometry;
  const auto take = [&](const auto& conv) {
    geometry.strides = conv.strides;
    geometry.dilations = conv.dilations;
    geometry.pads_begin = conv.pads_begin;
    geometry.pads_end = conv.pads_end;
  };
  if (const auto* conv = std::get_if<ir::Conv>(&op)) {
    take(*conv);
  } else if (const auto* reverse = std::get_if<ir::ConvTranspose>(&op)) {
    take(*reverse);
    geometry.transposed = true;
  } else {
    return refuse("it is no convolution");
  }
  const size_t spatial = geometry.strides.size();
  if (spatial == 0 || spatial > 3) {
    return refuse("cuDNN has no convolution of " + std::to_string(spatial) + " spatial dims");
  }
  const auto negative = [](int64_t pad) { return pad < 0; };
  if (std::any_of(geometry.pads_begin.begin(), geometry.pads_begin.end(), negative) ||
      std::any_of(geometry.pads_end.begin(), geometry.pads_end.end(), negative)) {
    return refuse("cuDNN has no negative padding");
  }
  if (spatial == 1) {
    geometry.strides.insert(geometry.strides.begin(), 1);
    geometry.dilations.insert(geometry.dilations.begin(), 1);
    geometry.pads_begin.insert(geometry.pads_begin.begin(), 0);
    geometry.pads_end.insert(geometry.pads_end.begin(), 0);
  }
  return geometry;
}

int64_t add_tensor(CudnnProblem& problem, DType dtype, const View& view, bool is_virtual = false) {
  return problem.add({dtype, view.dims, view.strides, is_virtual});
}

void add_convolution(CudnnProblem& problem, const Geometry& geometry, int64_t x, int64_t w,
                     int64_t y) {
  problem.operations.emplace_back(CudnnConvolution{x, w, y, geometry.strides, geometry.dilations,
                                                   geometry.pads_begin, geometry.pads_end,
                                                   geometry.transposed});
}

CudnnPointwise activation(const ChainStep& step) {
  CudnnPointwise pointwise;
  switch (step.kind) {
    case Kind::kSigmoid:
      pointwise.mode = CUDNN_POINTWISE_SIGMOID_FWD;
      break;
    case Kind::kTanh:
      pointwise.mode = CUDNN_POINTWISE_TANH_FWD;
      break;
    case Kind::kSwish:
      pointwise.mode = CUDNN_POINTWISE_SWISH_FWD;
      break;
    case Kind::kGelu:
      pointwise.mode = CUDNN_POINTWISE_GELU_FWD;
      break;
    case Kind::kClip:
      pointwise.mode = CUDNN_POINTWISE_RELU_FWD;
      pointwise.relu_low = step.low;
      pointwise.relu_high = step.high;
      break;
    default:
      pointwise.mode = CUDNN_POINTWISE_RELU_FWD;
  }
  return pointwise;
}

// Bias, residual, activation, each at most once, becomes residual, bias, activation.
Result<std::vector<ChainStep>> in_order(std::vector<ChainStep> steps, EpilogueOrder order) {
  if (order == EpilogueOrder::kAsWritten) return steps;
  const bool swaps =
      steps.size() >= 2 && steps[0].kind == Kind::kBias && steps[1].kind == Kind::kAdd;
  if (!swaps) return refuse("there is no bias followed by a residual");
  std::swap(steps[0], steps[1]);
  return steps;
}

class Builder {
 public:
  Builder(const ir::Graph& body, const EpilogueChain& chain) : body_(body), chain_(chain) {}

  // Convolves into the tensor that the result is in.
  Result<> convolve(DType dtype, bool is_virtual) {
    const ir::Node& anchor = body_.node(chain_.anchor);
    KILN_ASSIGN_OR_RETURN(const Geometry geometry, geometry_of(anchor.op));
    const int64_t x = operand(chain_.operands[0]);
    const int64_t w = operand(chain_.operands[1]);
    at_ = result(dtype, is_virtual);
    add_convolution(made_.problem, geometry, x, w, at_);
    return Ok();
  }

  void follow(const ChainStep& step, DType dtype, bool last) {
    CudnnPointwise pointwise = activation(step);
    if (step.kind == Kind::kAdd || step.kind == Kind::kBias) {
      pointwise.mode = CUDNN_POINTWISE_ADD;
      pointwise.b = step.kind == Kind::kAdd ? operand(step.operand) : bias(step.operand);
    }
    pointwise.x = at_;
    pointwise.y = at_ = result(last ? dtype : DType::kF32, !last);
    made_.problem.operations.emplace_back(pointwise);
  }

  ConvProblem take() {
    made_.output = at_;
    return std::move(made_);
  }

 private:
  // The number of the value's tensor; one that is read twice is one tensor.
  int64_t numbered(ir::ValueId value, const View& view) {
    for (const auto& [number, known] : made_.inputs) {
      const CudnnTensor& tensor = made_.problem.tensors[static_cast<size_t>(number)];
      if (known == value && tensor.strides == view.strides) return number;
    }
    const int64_t number = add_tensor(made_.problem, body_.type(value).dtype, view);
    made_.inputs.emplace_back(number, value);
    return number;
  }
  int64_t operand(const ChainOperand& operand) {
    return numbered(operand.value, view_of(body_.type(operand.value).shape, operand.channels_last));
  }
  int64_t bias(const ChainOperand& operand) {
    const Shape& whole = body_.type(body_.result(chain_.anchor)).shape;
    const size_t rank = std::max<size_t>(whole.size(), 4);
    return numbered(operand.value, bias_view(whole[1], rank, chain_.channels_last));
  }
  // A tensor of the anchor's extents, stored as the region's result is.
  int64_t result(DType dtype, bool is_virtual) {
    const TensorType& type = body_.type(body_.result(chain_.anchor));
    Shape stored = type.shape;
    if (chain_.channels_last) {
      std::rotate(stored.begin() + 1, stored.begin() + 2, stored.end());
    }
    return add_tensor(made_.problem, dtype, view_of(stored, chain_.channels_last), is_virtual);
  }

  const ir::Graph& body_;
  const EpilogueChain& chain_;
  ConvProblem made_;
  int64_t at_ = 0;
};

Result<ConvProblem> problem_of(const ir::Graph& body, const EpilogueChain& chain,
                               EpilogueOrder order, DType dtype) {
  KILN_ASSIGN_OR_RETURN(const auto steps, in_order(chain.steps, order));
  Builder builder(body, chain);
  KILN_RETURN_IF_ERROR(builder.convolve(steps.empty() ? dtype : DType::kF32, !steps.empty()));
  for (size_t i = 0; i < steps.size(); ++i) {
    builder.follow(steps[i], dtype, i + 1 == steps.size());
  }
  return builder.take();
}

Result<ConvProblem> problem_of(const ConvRequest& request) {
  KILN_ASSIGN_OR_RETURN(const Geometry geometry, geometry_of(request.op));
  ConvProblem made;
  CudnnProblem& problem = made.problem;
  const auto view = [](const TensorType& type) { return view_of(type.shape, false); };
  const bool has_bias = request.inputs.size() == 3;
  const int64_t x = add_tensor(problem, request.inputs[0].dtype, view(request.inputs[0]));
  const int64_t w = add_tensor(problem, request.inputs[1].dtype, view(request.inputs[1]));
  const View out = view(request.output);
  made.output = add_tensor(problem, has_bias ? DType::kF32 : request.output.dtype, out, has_bias);
  add_convolution(problem, geometry, x, w, made.output);
  for (int64_t number : {x, w}) made.inputs.emplace_back(number, ir::ValueId{});
  if (has_bias) {
    CudnnPointwise add;
    add.x = made.output;
    add.b = add_tensor(problem, request.inputs[2].dtype,
                       bias_view(request.output.shape[1], out.dims.size(), false));
    made.inputs.emplace_back(*add.b, ir::ValueId{});
    add.y = made.output = add_tensor(problem, request.output.dtype, out);
    problem.operations.emplace_back(add);
  }
  return made;
}

}  // namespace

Result<ConvProblem> fused_problem(const ir::Graph& body, const EpilogueChain& chain,
                                  EpilogueOrder order) {
  return problem_of(body, chain, order, body.type(body.outputs()[0]).dtype);
}

Result<ConvProblem> anchor_problem(const ir::Graph& body, const EpilogueChain& chain) {
  return problem_of(body, chain, EpilogueOrder::kAsWritten,
                    body.type(body.result(chain.anchor)).dtype);
}

Result<std::vector<ConvChoice>> cudnn_choices(const CudaTools& tools, const ConvRequest& request,
                                              size_t most) {
  KILN_ASSIGN_OR_RETURN(const ConvProblem made, problem_of(request));
  KILN_ASSIGN_OR_RETURN(const auto engines,
                        cudnn_engines(tools, made.problem, {most, tools.allow_tf32}));
  std::vector<CudnnOperand> operands;
  for (const auto& input : made.inputs) operands.push_back({input.first});
  operands.push_back({made.output});
  std::vector<ConvChoice> choices;
  for (const std::string& engine : engines) {
    const auto plan = make_cudnn_plan(tools, made.problem, engine);
    if (plan.ok()) choices.push_back({cudnn_call(made.problem, *plan, operands), engine});
  }
  if (choices.empty()) return refuse("cuDNN has no engine for this convolution");
  return choices;
}

}  // namespace kiln
