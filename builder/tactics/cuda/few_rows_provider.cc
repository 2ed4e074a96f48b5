#include "builder/tactics/cuda/few_rows_provider.h"

#include <algorithm>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/kernels/few_rows_kernel.h"
#include "builder/kernels/residency.h"
#include "builder/tactics/cuda/row_product.h"

namespace kiln {
namespace {

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

struct Problem {
  RowProduct product;
  FewRowsShape shape;
  codegen::RowFunction finish;
};

Result<Problem> problem_of(const TacticQuery& query) {
  Problem problem;
  KILN_ASSIGN_OR_RETURN(problem.product, match_row_product(query));
  const RowProduct& product = problem.product;
  problem.shape = {product.dtype, product.rows, product.columns, product.depth,
                   product.constant_weights};
  KILN_RETURN_IF_ERROR(check_few_rows(problem.shape, query.device.compute_capability));
  const auto function = [&] {
    const auto input = static_cast<uint32_t>(product.rest.anchor_input);
    return codegen::row_function(product.rest.kernel, input, product.columns);
  };
  auto finish = function();
  if (!finish.ok()) {  // what the kernel cannot make is left to a loop behind it
    leave_rest(*query.region.body, problem.product);
    finish = function();
  }
  KILN_ASSIGN_OR_RETURN(problem.finish, std::move(finish));
  problem.shape.parts = problem.finish.parts;
  problem.shape.columns /= problem.shape.parts;
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
  launch.inputs = inputs_of(*query.region.body, problem.product, lowered);
  add_launch(std::move(launch), *query.region.body, problem.product, lowered);
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
  return launch(query, problem, *chosen);
}

}  // namespace kiln
