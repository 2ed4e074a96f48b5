// A problem as cuBLASLt takes it. cuBLASLt is column-major; our row-major d = a b is its
// d^T = b^T a^T on the same bytes: its A is our b, its B our a, rows and columns trade places.
#pragma once
#include <cublasLt.h>

#include "engine/cuda/cublaslt_api.h"
#include "engine/cuda/matmul/problem.h"

namespace kiln::cuda {

// Filled in place and not moved: what lies inside is cuBLASLt's.
struct MatmulDescriptors {
  MatmulDescriptors() = default;
  MatmulDescriptors(const MatmulDescriptors&) = delete;
  MatmulDescriptors& operator=(const MatmulDescriptors&) = delete;

  cublasLtMatmulDescOpaque_t operation = {};
  cublasLtMatrixLayoutOpaque_t a = {}, b = {}, c = {}, d = {};  // ours; c: the residual
};

// Device addresses; null if there is none, or to ask for algorithms only.
struct MatmulAddends {
  const void* bias = nullptr;
  const void* scale = nullptr;
};

Result<> describe(const CublasLtApi& cublaslt, const MatmulProblem& problem,
                  const MatmulAddends& addends, MatmulDescriptors& descriptors);

cudaDataType_t data_type_of(DType dtype);  // REQUIRES: f16, bf16, f32, f64 or f8e4m3fn
cublasComputeType_t compute_type_of(MatmulProblem::Compute compute);
cudaDataType_t scale_type_of(MatmulProblem::Compute compute);  // of alpha and beta

}  // namespace kiln::cuda
