#include "builder/fuse/attention_mask.h"

#include <cmath>

#include "builder/clean/constant_value.h"
#include "builder/clean/rewrite.h"

namespace kiln::fuse {
namespace {

using clean::Site;
using ir::Graph;
using ir::made_by;
using ir::operand;
using ir::ValueId;

constexpr double kMaskedScore = -1e4;  // what models use where -inf would overflow f16
constexpr int64_t kMaxEvaluatedBytes = int64_t{64} << 20;

// Whether the constant mask [1..., S, S] hides exactly what lies right of the diagonal.
bool is_triangle(const Graph& graph, ValueId mask, int64_t rows, int64_t columns) {
  const TensorType& type = graph.type(mask);
  if (rows != columns || rows < 2 || type.elements() != rows * columns) return false;
  if (type.rank() < 2 || type.shape.back() != columns) return false;
  const auto bytes = clean::evaluate(graph, mask, kMaxEvaluatedBytes);
  if (!bytes) return false;
  Graph scratch;
  const ValueId constant = scratch.add_constant("", type, *bytes);
  const auto numbers = clean::read_doubles(scratch, constant);
  if (!numbers.ok()) return false;
  const bool additive = type.dtype != DType::kBool;
  for (int64_t s = 0; s < rows; ++s) {
    for (int64_t t = 0; t < columns; ++t) {
      const double x = (*numbers)[static_cast<size_t>(s * columns + t)];
      const bool masked = additive ? masks_out(x) : x == 0;
      const bool kept = additive ? x == 0 : x != 0;
      if (t > s ? !masked : !kept) return false;
    }
  }
  return true;
}

bool is_zero(const Graph& graph, ValueId value) {
  const auto splat = clean::splat_of(graph, value);
  return splat && *splat == 0;
}

}  // namespace

bool masks_out(double score) { return score <= kMaskedScore; }

AttentionMask read_bool_mask(const Graph& graph, ValueId condition, double fill, int64_t rows,
                             int64_t columns, bool nan_becomes_zero) {
  if (is_triangle(graph, condition, rows, columns)) return {ir::kNoValue, true, false};
  return {condition, false, nan_becomes_zero && std::isinf(fill)};
}

Result<AttentionMask> read_additive_mask(Graph& graph, ir::NodeId site, ValueId mask, int64_t rows,
                                         int64_t columns, bool nan_becomes_zero) {
  if (is_zero(graph, mask)) return AttentionMask{};
  if (is_triangle(graph, mask, rows, columns)) return AttentionMask{ir::kNoValue, true, false};
  const AttentionMask as_is{mask, false, nan_becomes_zero};
  if (!made_by(graph, mask, ScalarFn::kWhere)) return as_is;
  const ValueId condition = operand(graph, mask, 0);
  for (const bool kept_first : {true, false}) {
    const ValueId kept = operand(graph, mask, kept_first ? 1 : 2);
    const auto fill = clean::splat_of(graph, operand(graph, mask, kept_first ? 2 : 1));
    if (!is_zero(graph, kept) || !fill || !masks_out(*fill)) continue;
    // Without the guard a fully masked row of -inf is NaN, which a bool mask would not be.
    if (std::isinf(*fill) && !nan_becomes_zero) return as_is;
    ValueId keep = condition;
    if (!kept_first) {
      KILN_ASSIGN_OR_RETURN(keep, Site(graph, site).emit(ir::Pointwise{ScalarFn::kNot}, {keep}));
    }
    return read_bool_mask(graph, keep, *fill, rows, columns, nan_becomes_zero);
  }
  return as_is;
}

}  // namespace kiln::fuse
