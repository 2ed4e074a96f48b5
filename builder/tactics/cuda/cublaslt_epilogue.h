// A contraction region as one call of cuBLASLt, where its epilogue is one that cuBLASLt has.
#pragma once
#include <optional>
#include <vector>

#include "builder/ir/graph.h"
#include "engine/cuda/matmul/problem.h"

namespace kiln {

struct FusedMatmul {
  cuda::MatmulProblem problem;
  // Inputs of the body: a, b, then the bias, then the residual, where there are any. The bias may
  // be of another float dtype than the result: then the call needs it converted.
  std::vector<ir::ValueId> operands;
  float scale = 1;  // of a result of codes
};

// The anchor, then in this order a factor, bias and residual, and relu or tanh's gelu, each at most
// once; float casts and reshapes anywhere between. The activation is told by its values, so any
// spelling will do. Results in f16 and bf16 take erf's gelu for tanh's: they differ by less than
// those round near 1. A result of codes is quantised last, by a division by one number and a
// saturating cast. The error is the one-line reason why the body is none of these.
Result<FusedMatmul> fuse_matmul_epilogue(const ir::Graph& body, bool allow_tf32);

// The anchor alone, whatever follows it.
Result<FusedMatmul> match_matmul(const ir::Graph& body, bool allow_tf32);

}  // namespace kiln
