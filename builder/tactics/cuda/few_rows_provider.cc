#include "builder/tactics/cuda/few_rows_provider.h"

#include <algorithm>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/kernels/few_rows_kernel.h"
#include "builder/kernels/residency.h"
#include "builder/tactics/cuda/call_and_rest.h"
#include "builder/tactics/cuda/cublaslt_epilogue.h"

namespace kiln {
namespace {

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

struct Problem {
  std::vector<ir::ValueId> operands;  // x, w
  FewRowsShape shape;
  SplitRest rest;
  codegen::PointFunction finish;
};

// The product as it is, where nothing follows it.
SplitRest nothing_but(const ir::Graph& body, ir::ValueId product) {
  SplitRest rest;
  rest.anchor_result = body.type(product);
  rest.inputs = {product};
  const DType dtype = rest.anchor_result.dtype;
  const int64_t elements = rest.anchor_result.elements();
  rest.kernel.dims = {{elements, false}};
  rest.kernel.buffers = {{dtype, elements, false}, {dtype, elements, true}};
  loop::Expr load, store;
  load.kind = loop::Expr::Kind::kLoad;
  load.dtype = dtype;
  load.map.terms = {{0, 1, 0, 1}};
  store = load;
  store.kind = loop::Expr::Kind::kStore;
  store.buffer = 1;
  store.args = {0};
  rest.kernel.exprs = {load, store};
  return rest;
}

Result<FewRowsShape> shape_of(const TacticQuery& query, const FusedMatmul& product) {
  const cuda::MatmulProblem& p = product.problem;
  if (!p.batch.empty()) return refuse("the product is one of a batch");
  if (p.a.transposed || p.a.leading != p.k) return refuse("rows of the left side lie apart");
  if (!p.b.transposed || p.b.leading != p.k) {
    return refuse("columns of the right side are not stored one after the other");
  }
  const auto inputs = query.region.body->inputs();
  const auto weights = std::ranges::find(inputs, product.operands[1]) - inputs.begin();
  FewRowsShape shape{p.operand_dtype, p.m, p.n, p.k,
                     query.constants[static_cast<size_t>(weights)].has_value()};
  KILN_RETURN_IF_ERROR(check_few_rows(shape));
  return shape;
}

Result<Problem> problem_of(const TacticQuery& query) {
  const ir::Graph& body = *query.region.body;
  Problem problem;
  KILN_ASSIGN_OR_RETURN(FusedMatmul product, match_matmul(body, false));
  KILN_ASSIGN_OR_RETURN(problem.shape, shape_of(query, product));
  problem.operands = std::move(product.operands);
  KILN_ASSIGN_OR_RETURN(const EpilogueChain chain, match_anchor(body));
  const ir::ValueId result = body.result(chain.anchor);
  if (body.outputs()[0] == result) {
    problem.rest = nothing_but(body, result);
  } else {
    KILN_ASSIGN_OR_RETURN(problem.rest, split_rest(body, chain));
  }
  const auto input = static_cast<uint32_t>(problem.rest.anchor_input);
  KILN_ASSIGN_OR_RETURN(problem.finish, codegen::point_function(problem.rest.kernel, input));
  return problem;
}

uint32_t blocks_of(const TacticQuery& query, const Problem& problem, const FewRowsTiling& tiling) {
  return static_cast<uint32_t>(
      few_rows_blocks(problem.shape, tiling, query.device.multiprocessors));
}

std::string text_of(const TacticQuery& query, const Problem& problem, const FewRowsTiling& tiling) {
  return few_rows_text(problem.shape, tiling, blocks_of(query, problem, tiling), problem.finish);
}

Result<Lowered> launch(const TacticQuery& query, const Problem& problem,
                       const FewRowsTiling& tiling) {
  const ir::Graph& body = *query.region.body;
  KILN_ASSIGN_OR_RETURN(const codegen::Cubin cubin,
                        query.cuda->compiler->cache().compile(text_of(query, problem, tiling)));
  Lowered lowered;
  LocalLaunch launch;
  launch.cubin = cubin.bytes;
  launch.entry = "kiln_few_rows";
  launch.grid[0] = blocks_of(query, problem, tiling);
  launch.block[0] = static_cast<uint32_t>(tiling.warps * 32);
  launch.shared_bytes =
      static_cast<uint32_t>(shared_bytes_in_half(query.device.compute_capability, tiling.blocks));
  launch.programmatic = true;
  for (ir::ValueId operand : problem.operands) {
    launch.inputs.push_back(buffer_of(body, operand, lowered));
  }
  for (size_t i = 0; i < problem.rest.inputs.size(); ++i) {
    if (i == problem.rest.anchor_input) continue;
    launch.inputs.push_back(buffer_of(body, problem.rest.inputs[i], lowered));
  }
  launch.outputs.push_back({LocalBuffer::Kind::kOutput, 0});
  lowered.steps.emplace_back(std::move(launch));
  return lowered;
}

}  // namespace

std::vector<Tactic> few_rows_candidates(const TacticQuery& query, std::string& refusal) {
  if (query.cuda == nullptr || query.region.kind != ir::Region::Kind::kContraction) {
    refusal = query.cuda == nullptr ? "is for GPUs" : "covers contractions only";
    return {};
  }
  const auto problem = problem_of(query);
  if (!problem.ok()) {
    refusal = problem.error().message;
    return {};
  }
  std::vector<Tactic> tactics;
  for (const FewRowsTiling& tiling :
       few_rows_tilings(problem->shape, query.device.compute_capability)) {
    tactics.push_back({to_string(tiling)});
  }
  return tactics;
}

Result<Lowered> few_rows_lower(const TacticQuery& query, const Tactic& tactic) {
  KILN_ASSIGN_OR_RETURN(const Problem problem, problem_of(query));
  const auto tilings = few_rows_tilings(problem.shape, query.device.compute_capability);
  const auto chosen = std::ranges::find(tilings, tactic.key,
                                        [](const FewRowsTiling& one) { return to_string(one); });
  if (chosen == tilings.end()) {
    return refuse("'" + tactic.key + "' is no tiling of this product");
  }
  if (query.cuda->device) {  // all at once, so that the next tactics find theirs ready
    std::vector<std::string> texts;
    for (const FewRowsTiling& one : tilings) texts.push_back(text_of(query, problem, one));
    query.cuda->compiler->cache().compile_all(texts, query.device.threads);
  }
  return launch(query, problem, *chosen);
}

}  // namespace kiln
