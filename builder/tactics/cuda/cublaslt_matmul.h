// Matmuls by cuBLASLt: the problem of a request, and the algorithms that its heuristics propose.
#pragma once
#include <string>
#include <vector>

#include "builder/cuda/build_tools.h"
#include "builder/tactics/lowered.h"
#include "engine/cuda/matmul/problem.h"

namespace kiln {

// a b, as the operation "matmul" has it: leading axes broadcast.
struct MatmulRequest {
  TensorType a, b, result;
  bool transpose_a = false, transpose_b = false;  // how they are stored
};

// The call's inputs and outputs are left to the caller: a, b and the result.
struct MatmulChoice {
  LibraryCall call;
  std::string key;  // the algorithm's text: all that makes the call again
};

// kUnsupported, with the reason: types or a batch that cuBLASLt has no words for.
Result<cuda::MatmulProblem> matmul_problem(const MatmulRequest& request, bool allow_tf32);

// Best first, at most `most`. kUnsupported, with the reason, where cuBLASLt has no algorithm.
Result<std::vector<MatmulChoice>> cublaslt_choices(const CudaTools& tools,
                                                   const MatmulRequest& request, size_t most);

}  // namespace kiln
