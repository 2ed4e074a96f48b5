// softmax(scale * q k^T + mask) v as models spell it out.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/ir/match.h"

namespace kiln::fuse {

// A mask or bias that is added to the scores.
struct AddedMask {
  ir::ValueId value;
  bool split = false;  // to scores in AttentionPattern::split's shape
};

// The pattern above one MatMul, its parts as the model computes them.
struct AttentionPattern {
  ir::ValueId q, k, v;           // q [..., S, D]; k as its MatMul reads it; v [..., T, E]
  bool k_is_transposed = false;  // k is [..., D, T], else [..., T, D]
  bool v_is_transposed = false;  // v is [..., E, T]
  double scale = 1.0;
  std::vector<AddedMask> additive;
  ir::ValueId condition = ir::kNoValue;  // where(condition, scores, fill)
  bool condition_keeps = true;           // false: where(condition, fill, scores)
  double fill = 0;
  bool nan_becomes_zero = false;
  ir::ValueId scores;  // the softmax's input, [..., S, T]
  Shape split;         // the scores' where leading axes of theirs are split for a mask; else empty
};

// For each leading axis of `merged` [..., S, T] how many of those of `split` [..., S, T] it joins;
// nullopt if it is not made so.
std::optional<std::vector<size_t>> joined_axes(const Shape& split, const Shape& merged);

// nullopt: `root` is no MatMul of a softmax. `miss` is set when it is one and still is no
// attention.
std::optional<AttentionPattern> match_attention(const ir::Graph& graph, ir::NodeId root,
                                                std::string& miss);

}  // namespace kiln::fuse
