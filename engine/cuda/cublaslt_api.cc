#include "engine/cuda/cublaslt_api.h"

#include <array>

#include "engine/cuda/shared_library.h"

namespace kiln::cuda {
namespace {

ErrorCode code_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return ErrorCode::kOutOfMemory;
    case CUBLAS_STATUS_INVALID_VALUE:
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kDevice;
  }
}

}  // namespace

Result<CublasLtApi> open_cublaslt() {
  constexpr std::array kNames = {"libcublasLt.so.13", "libcublasLt.so.12"};
  KILN_ASSIGN_OR_RETURN(const SharedLibrary library, SharedLibrary::open(kNames));
  CublasLtApi cublaslt;
#define KILN_BIND(member, function) KILN_RETURN_IF_ERROR(library.bind(#function, cublaslt.member));
  KILN_CUBLASLT_FUNCTIONS(KILN_BIND)
#undef KILN_BIND
  return cublaslt;
}

Result<> check(const CublasLtApi& cublaslt, cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return Ok();
  return Error{code_of(status), what + " failed: " + cublaslt.get_status_name(status) + " (" +
                                    cublaslt.get_status_string(status) + ")"};
}

}  // namespace kiln::cuda
