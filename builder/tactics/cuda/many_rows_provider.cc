#include "builder/tactics/cuda/many_rows_provider.h"

#include <algorithm>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/kernels/many_rows_kernel.h"
#include "builder/tactics/cuda/row_product.h"

namespace kiln {
namespace {

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

constexpr int64_t kFewestRows = 9;  // fewer are read too slowly by tiles of 64

struct Problem {
  RowProduct product;
  ManyRowsShape shape;
  codegen::PairFunction finish;
};

// The kernel with what follows the product.
Result<> add_finish(const TacticQuery& query, Problem& problem) {
  const RowProduct& product = problem.product;
  const auto input = static_cast<uint32_t>(product.rest.anchor_input);
  KILN_ASSIGN_OR_RETURN(problem.finish,
                        codegen::pair_function(product.rest.kernel, input, product.columns));
  problem.shape.halves = problem.finish.parts;
  problem.shape.result = problem.finish.result;
  problem.shape.columns = product.columns / problem.finish.parts;
  KILN_RETURN_IF_ERROR(check_many_rows(problem.shape, query.device.compute_capability));
  const auto takes_it = [&](const ManyRowsTiling& tiling) { return takes(tiling, problem.shape); };
  if (std::ranges::none_of(all_many_rows_tilings(), takes_it)) return refuse("no tiling takes it");
  return Ok();
}

Result<Problem> problem_of(const TacticQuery& query) {
  Problem problem;
  KILN_ASSIGN_OR_RETURN(problem.product, match_row_product(query));
  const RowProduct& product = problem.product;
  problem.shape = {product.dtype, product.rows, product.columns, product.depth,
                   product.constant_weights};
  KILN_RETURN_IF_ERROR(check_many_rows(problem.shape, query.device.compute_capability));
  if (add_finish(query, problem).ok()) return problem;
  // What the kernel cannot make is left to a loop behind it.
  leave_rest(*query.region.body, problem.product);
  KILN_RETURN_IF_ERROR(add_finish(query, problem));
  return problem;
}

uint32_t blocks_of(const TacticQuery& query, const Problem& problem, const ManyRowsTiling& tiling) {
  return static_cast<uint32_t>(
      many_rows_blocks(problem.shape, tiling, query.device.multiprocessors));
}

std::string text_of(const TacticQuery& query, const Problem& problem,
                    const ManyRowsTiling& tiling) {
  return many_rows_text(problem.shape, tiling, blocks_of(query, problem, tiling), problem.finish);
}

// Where the operands of the launch are: x, w, then those of the rest without the product.
std::vector<plan::TensorMap> maps_of(const Problem& problem, const ManyRowsTiling& tiling,
                                     uint32_t result) {
  const auto depth = static_cast<uint32_t>(problem.shape.depth);
  const auto columns = static_cast<uint32_t>(problem.shape.columns);
  const ManyRowsBoxes boxes = many_rows_boxes(problem.shape, tiling);
  uint32_t residual = result;
  if (problem.finish.residual) {
    const uint32_t number = *problem.finish.residual;
    residual = 2 + number - (number > problem.product.rest.anchor_input ? 1 : 0);
  }
  return {{0, depth, boxes.x},
          {1, depth, boxes.w},
          {residual, columns, boxes.y},
          {result, columns, boxes.y}};
}

Result<Lowered> launch(const TacticQuery& query, const Problem& problem,
                       const ManyRowsTiling& tiling) {
  KILN_ASSIGN_OR_RETURN(const codegen::Cubin cubin,
                        query.cuda->compiler->cache().compile(text_of(query, problem, tiling)));
  Lowered lowered;
  LocalLaunch launch;
  launch.cubin = cubin.bytes;
  launch.entry = "kiln_many_rows";
  launch.grid[0] = blocks_of(query, problem, tiling);
  launch.block[0] = kManyRowsThreads;
  launch.shared_bytes = many_rows_shared_bytes(problem.shape, tiling);
  launch.programmatic = true;
  launch.inputs = inputs_of(*query.region.body, problem.product, lowered);
  launch.tensor_maps = maps_of(problem, tiling, static_cast<uint32_t>(launch.inputs.size()));
  add_launch(std::move(launch), *query.region.body, problem.product, lowered);
  return lowered;
}

}  // namespace

std::vector<Tactic> many_rows_candidates(const TacticQuery& query, std::string& refusal) {
  if (query.cuda == nullptr || query.region.kind != ir::Region::Kind::kContraction) {
    refusal = query.cuda == nullptr ? "is for GPUs" : "covers contractions only";
    return {};
  }
  const auto problem = problem_of(query);
  if (!problem.ok()) {
    refusal = problem.error().message;
    return {};
  }
  if (problem->shape.rows < kFewestRows) {
    refusal = "the product has " + std::to_string(problem->shape.rows) + " rows, " +
              std::to_string(kFewestRows) + " or more expected";
    return {};
  }
  std::vector<Tactic> tactics;
  for (const ManyRowsTiling& tiling :
       many_rows_tilings(problem->shape, query.device.multiprocessors)) {
    tactics.push_back({to_string(tiling)});
  }
  return tactics;
}

Result<Lowered> many_rows_lower(const TacticQuery& query, const Tactic& tactic) {
  KILN_ASSIGN_OR_RETURN(const Problem problem, problem_of(query));
  const auto all = all_many_rows_tilings();
  const auto chosen =
      std::ranges::find(all, tactic.key, [](const ManyRowsTiling& one) { return to_string(one); });
  if (chosen == all.end() || !takes(*chosen, problem.shape)) {
    return refuse("'" + tactic.key + "' is no tiling of this product");
  }
  return launch(query, problem, *chosen);
}

}  // namespace kiln
