#include "builder/tactics/cuda/attention_provider.h"

#include <algorithm>
#include <limits>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/kernels/attention_kernel.h"
#include "builder/tactics/cuda/attention_operands.h"

namespace kiln {
namespace {

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

// Along extents of 1 a view may have any stride; a mask repeats there.
AttentionPlace place_of(const StridedView& view) {
  const auto stride = [&](size_t axis) { return view.dims[axis] == 1 ? 0 : view.strides[axis]; };
  return {view.offset, stride(0), stride(1), stride(2), stride(3)};
}

struct Problem {
  AttentionOperands operands;
  AttentionShape shape;
};

Result<Problem> problem_of(const ir::Graph& body) {
  Problem made;
  KILN_ASSIGN_OR_RETURN(made.operands, attention_operands(body));
  const AttentionOperands& found = made.operands;
  const ir::Node& node = body.node(found.anchor);
  if (found.op->softcap != 0) return refuse("the kernel has no soft cap");
  AttentionShape& shape = made.shape;
  shape.dtype = body.type(node.inputs[0]).dtype;
  shape.batch = found.q.dims[0];
  shape.heads = found.q.dims[1];
  shape.rows = found.q.dims[2];
  shape.depth = found.q.dims[3];
  shape.key_heads = found.k.dims[1];
  shape.columns = found.k.dims[2];
  shape.value_depth = found.v.dims[3];
  shape.q = place_of(found.q);
  shape.k = place_of(found.k);
  shape.v = place_of(found.v);
  shape.y = place_of(found.y);
  shape.scale = found.op->scale;
  shape.causal = found.op->causal;
  if (found.mask) {
    shape.mask = body.type(found.mask->source).dtype;
    if (shape.mask == DType::kBool) return refuse("the mask is of bool");
    shape.mask_place = place_of(*found.mask);
    shape.mask_period = found.mask->dims[0];
    shape.masked_row_zero = found.op->masked_row_zero;
  }
  KILN_RETURN_IF_ERROR(check_attention_shape(shape));
  return made;
}

std::string key_of(const AttentionTiling& tiling) {
  return "w" + std::to_string(tiling.warps) + ".n" + std::to_string(tiling.tile);
}

Result<LocalBuffer> buffer_of(const ir::Graph& body, ir::ValueId value) {
  const auto inputs = body.inputs();
  const auto found = std::find(inputs.begin(), inputs.end(), value);
  if (found == inputs.end()) return refuse("an operand is a constant of the region");
  return LocalBuffer{LocalBuffer::Kind::kInput, static_cast<uint32_t>(found - inputs.begin())};
}

Result<LocalLaunch> launch_of(const TacticQuery& query, const Problem& problem,
                              const AttentionTiling& tiling) {
  LocalLaunch launch;
  const AttentionOperands& operands = problem.operands;
  const StridedView& mask = operands.mask ? *operands.mask : operands.q;
  for (const StridedView* view : {&operands.q, &operands.k, &operands.v, &mask}) {
    KILN_ASSIGN_OR_RETURN(const LocalBuffer buffer, buffer_of(*query.region.body, view->source));
    launch.inputs.push_back(buffer);
  }
  launch.outputs.push_back({LocalBuffer::Kind::kOutput, 0});
  const int64_t blocks = attention_blocks(problem.shape, tiling);
  if (blocks > std::numeric_limits<int32_t>::max()) return refuse("its grid has too many blocks");
  KILN_ASSIGN_OR_RETURN(const codegen::Cubin cubin, query.cuda->compiler->cache().compile(
                                                        attention_text(problem.shape, tiling)));
  launch.cubin = cubin.bytes;
  launch.entry = "kiln_attention";
  launch.grid[0] = static_cast<uint32_t>(blocks);
  launch.block[0] = static_cast<uint32_t>(tiling.warps * 32);
  launch.programmatic = true;
  return launch;
}

}  // namespace

std::vector<Tactic> attention_candidates(const TacticQuery& query, std::string& refusal) {
  if (query.region.kind != ir::Region::Kind::kAttention || query.cuda == nullptr) {
    refusal = query.cuda == nullptr ? "is for GPUs" : "covers attention only";
    return {};
  }
  const auto problem = problem_of(*query.region.body);
  if (!problem.ok()) {
    refusal = problem.error().message;
    return {};
  }
  std::vector<Tactic> tactics;
  for (const AttentionTiling& tiling : attention_tilings(problem->shape)) {
    tactics.push_back({key_of(tiling)});
  }
  return tactics;
}

Result<Lowered> attention_lower(const TacticQuery& query, const Tactic& tactic) {
  KILN_ASSIGN_OR_RETURN(const Problem problem, problem_of(*query.region.body));
  const auto tilings = attention_tilings(problem.shape);
  for (const AttentionTiling& tiling : tilings) {
    if (key_of(tiling) != tactic.key) continue;
    KILN_ASSIGN_OR_RETURN(LocalLaunch launch, launch_of(query, problem, tiling));
    Lowered lowered;
    lowered.steps.emplace_back(std::move(launch));
    return lowered;
  }
  return refuse("'" + tactic.key + "' is no tiling of this attention");
}

}  // namespace kiln
