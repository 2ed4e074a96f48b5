#include "builder/clean/absorb_transposes.h"

#include <utility>

#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

bool swaps_last_two(const ir::Transpose& transpose) {
  const auto rank = transpose.perm.size();
  if (rank < 2) return false;
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (transpose.perm[i] != static_cast<int64_t>(i)) return false;
  }
  return transpose.perm[rank - 1] == static_cast<int64_t>(rank) - 2;
}

Result<ValueId> absorb(Site& site) {
  const auto* matmul = site.op<ir::MatMul>();
  if (!matmul) return kNoValue;
  ir::MatMul flags = *matmul;
  auto inputs = site.node().inputs;
  for (size_t i = 0; i < 2; ++i) {
    const auto* transpose = ir::producer_as<ir::Transpose>(site.graph, inputs[i]);
    if (!transpose || !swaps_last_two(*transpose)) continue;
    bool& flag = i == 0 ? flags.transpose_a : flags.transpose_b;
    flag = !flag;
    inputs[i] = ir::operand(site.graph, inputs[i], 0);
  }
  return flags == *matmul ? Result<ValueId>(kNoValue) : site.emit(flags, std::move(inputs));
}

}  // namespace

Result<bool> absorb_transposes(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {absorb};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
