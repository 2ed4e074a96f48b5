// From the IR's MatMul to the problem that cuBLASLt is asked to solve.
#pragma once
#include "builder/ir/op.h"
#include "engine/cuda/matmul/problem.h"
#include "formats/result.h"

namespace kiln {

// ir::MatMul on these types. `result` has the matmul's shape; its dtype may be wider than the
// operands' where no rounding lies between.
struct MatmulRequest {
  ir::MatMul op;
  TensorType a, b, result;
  bool allow_tf32 = false;  // f32 operands may be rounded to TF32
};

// Batch axes are merged where strides allow: into rows where all share one b, and with each other.
// kUnsupported says in one line why cuBLASLt has no such matmul. REQUIRES: the op accepts the
// types.
Result<cuda::MatmulProblem> matmul_problem(const MatmulRequest& request);

}  // namespace kiln
