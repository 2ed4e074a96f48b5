// The operation of a matmul step: problem and algorithm as attributes, "cublaslt.matmul".
//   m, n, k, batch                      problem.h, as all of these
//   operands, result                    dtypes
//   a_transposed, a_leading, a_strides  and b_, d_ alike
//   compute, alpha, activation, bias, residual
//   algorithm                           its text (algorithm.h)
#pragma once
#include "engine/cuda/matmul/algorithm.h"
#include "engine/cuda/matmul/problem.h"
#include "formats/operation/operation.h"

namespace kiln::cuda {

inline constexpr const char* kMatmulOperation = "cublaslt.matmul";

struct MatmulCall {
  MatmulProblem problem;
  MatmulAlgorithm algorithm;
  friend bool operator==(const MatmulCall&, const MatmulCall&) = default;
};

Operation to_operation(const MatmulCall& call);
// kCorruptData names the attribute that is missing or makes no sense by itself; that the numbers
// fit together is check()'s to say.
Result<MatmulCall> matmul_call_from(const Operation& operation);

}  // namespace kiln::cuda
