#include "builder/tactics/cuda/cublaslt_matmul.h"

#include "builder/tactics/cuda/cublaslt_algorithms.h"
#include "engine/cuda/matmul/operation.h"

namespace kiln {
namespace {

LibraryCall call_of(const cuda::MatmulProblem& problem, const cuda::MatmulAlgorithm& algorithm) {
  LibraryCall call;
  call.library = LibraryCall::Library::kCublasLt;
  call.operation = cuda::to_operation({problem, algorithm});
  call.workspace_bytes = algorithm.workspace_bytes;
  call.tf32 = problem.compute == cuda::MatmulProblem::Compute::kTf32;
  return call;
}

}  // namespace

Result<std::vector<MatmulChoice>> cublaslt_choices(const CudaTools& tools,
                                                   const cuda::MatmulProblem& problem,
                                                   size_t most) {
  if (tools.cublaslt == nullptr) {
    return Error{ErrorCode::kUnsupported, "there is no GPU to ask for algorithms"};
  }
  KILN_ASSIGN_OR_RETURN(const auto algorithms, matmul_algorithms(*tools.cublaslt, problem, most));
  std::vector<MatmulChoice> choices;
  for (const cuda::MatmulAlgorithm& algorithm : algorithms) {
    choices.push_back({call_of(problem, algorithm), cuda::to_string(algorithm)});
  }
  return choices;
}

Result<std::vector<MatmulChoice>> cublaslt_choices(const CudaTools& tools, MatmulRequest request,
                                                   size_t most) {
  request.allow_tf32 = tools.allow_tf32;
  KILN_ASSIGN_OR_RETURN(const cuda::MatmulProblem problem, matmul_problem(request));
  return cublaslt_choices(tools, problem, most);
}

Result<LibraryCall> matmul_call(const cuda::MatmulProblem& problem, std::string_view key) {
  const auto algorithm = cuda::parse_matmul_algorithm(key);
  if (algorithm) return call_of(problem, *algorithm);
  return Error{ErrorCode::kUnsupported, "'" + std::string(key) + "' is no algorithm of cuBLASLt's"};
}

}  // namespace kiln
