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

std::string question_of(const cuda::MatmulProblem& problem, size_t most) {
  const std::string text = encode(cuda::to_operation({problem, {}}));
  return hashed_question("cublaslt algorithms, " + std::to_string(most), text);
}

}  // namespace

Result<std::vector<MatmulChoice>> cublaslt_choices(const CudaTools& tools,
                                                   const cuda::MatmulProblem& problem,
                                                   size_t most) {
  const auto ask = [&]() -> Result<DeviceAnswers::Values> {
    KILN_ASSIGN_OR_RETURN(const auto algorithms,
                          matmul_algorithms(tools.device->cublaslt(), problem, most));
    DeviceAnswers::Values keys;
    for (const auto& algorithm : algorithms) keys.push_back(cuda::to_string(algorithm));
    return keys;
  };
  KILN_ASSIGN_OR_RETURN(
      const auto keys,
      tools.answers->get(question_of(problem, most),
                         tools.device == nullptr ? nullptr : DeviceAnswers::Ask(ask)));
  std::vector<MatmulChoice> choices;
  for (const std::string& key : keys) {
    KILN_ASSIGN_OR_RETURN(LibraryCall call, matmul_call(problem, key));
    choices.push_back({std::move(call), key});
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
