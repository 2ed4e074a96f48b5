#include "builder/tactics/cuda/depthwise_provider.h"

#include <algorithm>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/kernels/depthwise_kernel.h"
#include "builder/tactics/cuda/call_and_rest.h"
#include "builder/tactics/split_anchor.h"
#include "builder/verify/reference.h"

namespace kiln {
namespace {

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

struct Problem {
  ir::ValueId x, w;
  DepthwiseShape shape;
  SplitRest rest;
  codegen::PointFunction finish;
};

// The convolution as its operands have it, N, C, H, W.
Result<DepthwiseShape> shape_of(const ir::Graph& body, const EpilogueChain& chain) {
  const ir::Node& node = body.node(chain.anchor);
  const auto* conv = std::get_if<ir::Conv>(&node.op);
  const TensorType& x = body.type(node.inputs[0]);
  const TensorType& w = body.type(node.inputs[1]);
  const Shape& y = body.type(node.outputs[0]).shape;
  if (conv == nullptr || x.rank() != 4) return refuse("it is no convolution of images");
  if (conv->groups != x.shape[1] || w.shape[0] != x.shape[1] || w.shape[1] != 1) {
    return refuse("channels are not convolved each by itself");
  }
  if (!chain.operands[0].channels_last) return refuse("channels are not last");
  if (conv->dilations != std::vector<int64_t>{1, 1}) return refuse("the window has gaps");
  if (w.dtype != x.dtype) return refuse("the operands are of two types");
  const DepthwiseShape shape{.dtype = x.dtype,
                             .batch = x.shape[0],
                             .height = x.shape[2],
                             .width = x.shape[3],
                             .channels = x.shape[1],
                             .out_height = y[2],
                             .out_width = y[3],
                             .window_y = w.shape[2],
                             .window_x = w.shape[3],
                             .stride_y = conv->strides[0],
                             .stride_x = conv->strides[1],
                             .pad_y = conv->pads_begin[0],
                             .pad_x = conv->pads_begin[1]};
  KILN_RETURN_IF_ERROR(check_depthwise(shape));
  return shape;
}

Result<Problem> problem_of(const TacticQuery& query) {
  const ir::Graph& body = *query.region.body;
  KILN_ASSIGN_OR_RETURN(EpilogueChain chain, match_anchor(body));
  Problem problem;
  KILN_ASSIGN_OR_RETURN(problem.shape, shape_of(body, chain));
  problem.x = chain.operands[0].value;
  problem.w = chain.operands[1].value;
  KILN_RETURN_IF_ERROR([&]() -> Result<> {
    const auto weights = known_operand(query, problem.w);
    return weights.ok() ? Ok() : Result<>(weights.error());
  }());
  chain.steps.clear();  // the bias is among what follows
  KILN_ASSIGN_OR_RETURN(problem.rest, split_rest(body, chain));
  const auto input = static_cast<uint32_t>(problem.rest.anchor_input);
  KILN_ASSIGN_OR_RETURN(problem.finish,
                        codegen::point_function(problem.rest.kernel, input, kDepthwiseVector));
  return problem;
}

// [channels, window] as it lies in either order of axes, turned so that channels are last.
Result<HostTensor> turned_weights(const TacticQuery& query, const Problem& problem) {
  KILN_ASSIGN_OR_RETURN(HostTensor weights, known_operand(query, problem.w));
  const int64_t window = problem.shape.window_y * problem.shape.window_x;
  const int64_t channels = problem.shape.channels;
  weights.type.shape = {channels, window};
  const TensorType turned{weights.type.dtype, {window, channels}};
  KILN_ASSIGN_OR_RETURN(auto results,
                        run_reference_op(ir::Transpose{{1, 0}}, {&weights, 1}, {&turned, 1}));
  return std::move(results[0]);
}

Result<Lowered> launch(const TacticQuery& query, const Problem& problem,
                       const DepthwiseTiling& tiling) {
  const ir::Graph& body = *query.region.body;
  KILN_ASSIGN_OR_RETURN(
      const codegen::Cubin cubin,
      query.cuda->compiler->cache().compile(depthwise_text(problem.shape, tiling, problem.finish)));
  Lowered lowered;
  KILN_ASSIGN_OR_RETURN(HostTensor weights, turned_weights(query, problem));
  lowered.constants.push_back(std::move(weights));
  LocalLaunch launch;
  launch.cubin = cubin.bytes;
  launch.entry = "kiln_depthwise";
  launch.grid[0] = static_cast<uint32_t>(depthwise_blocks(problem.shape, tiling));
  launch.block[0] = static_cast<uint32_t>(kDepthwiseThreads);
  launch.programmatic = true;
  launch.inputs = {buffer_of(body, problem.x, lowered), {LocalBuffer::Kind::kConstant, 0}};
  for (size_t i = 0; i < problem.rest.inputs.size(); ++i) {
    if (i == problem.rest.anchor_input) continue;
    launch.inputs.push_back(buffer_of(body, problem.rest.inputs[i], lowered));
  }
  launch.outputs.push_back({LocalBuffer::Kind::kOutput, 0});
  lowered.steps.emplace_back(std::move(launch));
  return lowered;
}

}  // namespace

std::vector<Tactic> depthwise_candidates(const TacticQuery& query, std::string& refusal) {
  if (query.cuda == nullptr || query.region.kind != ir::Region::Kind::kConvolution) {
    refusal = query.cuda == nullptr ? "is for GPUs" : "covers convolutions only";
    return {};
  }
  const auto problem = problem_of(query);
  if (!problem.ok()) {
    refusal = problem.error().message;
    return {};
  }
  std::vector<Tactic> tactics;
  for (const DepthwiseTiling& tiling :
       depthwise_tilings(problem->shape, query.device.multiprocessors)) {
    tactics.push_back({to_string(tiling)});
  }
  return tactics;
}

Result<Lowered> depthwise_lower(const TacticQuery& query, const Tactic& tactic) {
  KILN_ASSIGN_OR_RETURN(const Problem problem, problem_of(query));
  const auto tilings = depthwise_tilings(problem.shape, query.device.multiprocessors);
  const auto chosen = std::ranges::find(tilings, tactic.key,
                                        [](const DepthwiseTiling& one) { return to_string(one); });
  if (chosen == tilings.end()) {
    return refuse("'" + tactic.key + "' is no tiling of this convolution");
  }
  return launch(query, problem, *chosen);
}

}  // namespace kiln
