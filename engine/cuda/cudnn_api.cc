#include "engine/cuda/cudnn_api.h"

#include <array>

#include "engine/cuda/shared_library.h"

namespace kiln::cuda {
namespace {

ErrorCode code_of(cudnnStatus_t status) {
  // A status is a category and a detail: CUDNN_STATUS_NOT_SUPPORTED_SHAPE is 3000 + 3.
  constexpr int kCategory = 1000;
  if (status == CUDNN_STATUS_ALLOC_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return ErrorCode::kOutOfMemory;
  }
  const int category = static_cast<int>(status) / kCategory;
  const bool refused = category == CUDNN_STATUS_NOT_SUPPORTED / kCategory ||
                       category == CUDNN_STATUS_BAD_PARAM / kCategory;
  return refused ? ErrorCode::kUnsupported : ErrorCode::kDevice;
}

}  // namespace

Result<CudnnApi> open_cudnn() {
  constexpr std::array kNames = {"libcudnn.so.9"};
  KILN_ASSIGN_OR_RETURN(const SharedLibrary library, SharedLibrary::open(kNames));
  CudnnApi cudnn;
#define KILN_BIND(member, function) KILN_RETURN_IF_ERROR(library.bind(#function, cudnn.member));
  KILN_CUDNN_FUNCTIONS(KILN_BIND)
#undef KILN_BIND
  return cudnn;
}

Result<> check(const CudnnApi& cudnn, cudnnStatus_t status, const std::string& what) {
  if (status == CUDNN_STATUS_SUCCESS) return Ok();
  const char* name = cudnn.get_error_string(status);
  char detail[512] = "";
  cudnn.get_last_error_string(detail, sizeof detail);
  std::string message = what + " failed: " + (name != nullptr ? name : "unknown status");
  if (detail[0] != 0) message += std::string(" (") + detail + ")";
  return Error{code_of(status), std::move(message)};
}

}  // namespace kiln::cuda
