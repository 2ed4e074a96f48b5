// Calls of cuBLASLt for one problem, each with another algorithm.
#pragma once
#include <string>
#include <vector>

#include "builder/cuda/build_tools.h"
#include "builder/tactics/cuda/cublaslt_problem.h"
#include "builder/tactics/lowered.h"

namespace kiln {

struct MatmulChoice {
  LibraryCall call;  // its operands are the caller's to fill in: a, b, bias, residual -> result
  std::string key;   // says the algorithm; matmul_call() makes the call from it again
};

// Best first, at most `most`: recorded answers, else cuBLASLt's. kUnsupported: cuBLASLt has none,
// or nothing is recorded and there is no GPU to ask.
Result<std::vector<MatmulChoice>> cublaslt_choices(const CudaTools& tools,
                                                   const cuda::MatmulProblem& problem, size_t most);
// For a plain `matmul`; request.allow_tf32 is the tools' to say.
Result<std::vector<MatmulChoice>> cublaslt_choices(const CudaTools& tools, MatmulRequest request,
                                                   size_t most);

// The choice of that key; needs no GPU. kUnsupported: the key is not of this provider's making.
Result<LibraryCall> matmul_call(const cuda::MatmulProblem& problem, std::string_view key);

}  // namespace kiln
