// The mask of an attention pattern, brought to the form that the Attention op takes.
#pragma once
#include "builder/ir/graph.h"
#include "builder/ir/match.h"

namespace kiln::fuse {

struct AttentionMask {
  ir::ValueId value = ir::kNoValue;  // none, bool (false: masked) or additive float
  bool causal = false;
  bool masked_row_zero = false;
};

// What is added to scores of [..., S, T], seen through its construction: zeros are no mask,
// where(c, 0, very negative) is the bool mask c, and a constant triangle is `causal`.
// `nan_becomes_zero`: the softmax is guarded against rows that are masked fully.
Result<AttentionMask> read_additive_mask(ir::Graph& graph, ir::NodeId site, ir::ValueId mask,
                                         int64_t rows, int64_t columns, bool nan_becomes_zero);

// where(condition, scores, fill) with a very negative `fill`.
AttentionMask read_bool_mask(const ir::Graph& graph, ir::ValueId condition, double fill,
                             int64_t rows, int64_t columns, bool nan_becomes_zero);

// Scores this low vanish in a softmax beside any ordinary one.
bool masks_out(double score);

}  // namespace kiln::fuse
