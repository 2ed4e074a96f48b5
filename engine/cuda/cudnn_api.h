// CudnnApi: the functions of cuDNN's C API that Kiln calls.
#pragma once
#include <cudnn_graph.h>

#include <string>

#include "formats/result.h"

// X(member, function)
// clang-format off
#define KILN_CUDNN_FUNCTIONS(X)                              \
  X(get_version, cudnnGetVersion)                            \
  X(get_error_string, cudnnGetErrorString)                   \
  X(get_last_error_string, cudnnGetLastErrorString)          \
  X(create, cudnnCreate)                                     \
  X(destroy, cudnnDestroy)                                   \
  X(set_stream, cudnnSetStream)                              \
  X(create_descriptor, cudnnBackendCreateDescriptor)         \
  X(destroy_descriptor, cudnnBackendDestroyDescriptor)       \
  X(finalize, cudnnBackendFinalize)                          \
  X(set_attribute, cudnnBackendSetAttribute)                 \
  X(get_attribute, cudnnBackendGetAttribute)                 \
  X(execute, cudnnBackendExecute)
// clang-format on

namespace kiln::cuda {

struct CudnnApi {
#define KILN_MEMBER(member, function) decltype(&::function) member = nullptr;
  KILN_CUDNN_FUNCTIONS(KILN_MEMBER)
#undef KILN_MEMBER
};

// Opens libcudnn.so.9. kUnsupported where there is none.
Result<CudnnApi> open_cudnn();

// `what` failed: "building the plan of a convolution". Refusals of a problem are kUnsupported, so
// that a caller can try another engine; all others are kDevice or kOutOfMemory.
Result<> check(const CudnnApi& cudnn, cudnnStatus_t status, const std::string& what);

}  // namespace kiln::cuda
