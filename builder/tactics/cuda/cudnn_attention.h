// Attention by cuDNN: one kernel for both products and the softmax, in f16 or bf16. Operands are
// read as they lie in the region's inputs, heads behind tokens or before, q, k and v in one tensor
// or in three.
#pragma once
#include <optional>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/tactics/cuda/cudnn_problem.h"
#include "builder/tactics/cuda/masked_rows.h"

namespace kiln {

// Operand: its tensor's number, the body's value that it lies in, and where, in elements.
struct PlacedOperand {
  int64_t number = 0;
  ir::ValueId value{};
  int64_t offset = 0;
};

struct AttentionProblem {
  CudnnProblem problem;
  std::vector<PlacedOperand> inputs;
  int64_t output = 0;
  // Set where the problem leaves the mean of v in rows that have to be zero.
  std::optional<MaskedRows> masked_rows;
};

// The error is the one-line reason why the body is more than an Attention node between views, or
// one that cuDNN does not know: f32, masks of bool, soft caps.
Result<AttentionProblem> attention_problem(const ir::Graph& body);

}  // namespace kiln
