// CublasLtApi: the functions of cuBLASLt that Kiln calls.
#pragma once
#include <cublasLt.h>

#include <string>

#include "formats/result.h"

// X(member, function). Descriptors are initialised in our own memory (the _internal functions are
// what cublasLt.h's inline ones call), so there is nothing to destroy.
// clang-format off
#define KILN_CUBLASLT_FUNCTIONS(X)                                      \
  X(create, cublasLtCreate)                                             \
  X(destroy, cublasLtDestroy)                                           \
  X(get_version, cublasLtGetVersion)                                    \
  X(get_status_name, cublasLtGetStatusName)                             \
  X(get_status_string, cublasLtGetStatusString)                         \
  X(matmul, cublasLtMatmul)                                             \
  X(matmul_desc_init, cublasLtMatmulDescInit_internal)                  \
  X(matmul_desc_set_attribute, cublasLtMatmulDescSetAttribute)          \
  X(matrix_layout_init, cublasLtMatrixLayoutInit_internal)              \
  X(matrix_layout_set_attribute, cublasLtMatrixLayoutSetAttribute)      \
  X(preference_init, cublasLtMatmulPreferenceInit_internal)             \
  X(preference_set_attribute, cublasLtMatmulPreferenceSetAttribute)     \
  X(algo_get_heuristic, cublasLtMatmulAlgoGetHeuristic)                 \
  X(algo_get_ids, cublasLtMatmulAlgoGetIds)                             \
  X(algo_init, cublasLtMatmulAlgoInit)                                  \
  X(algo_check, cublasLtMatmulAlgoCheck)                                \
  X(algo_config_set_attribute, cublasLtMatmulAlgoConfigSetAttribute)    \
  X(algo_config_get_attribute, cublasLtMatmulAlgoConfigGetAttribute)
// clang-format on

namespace kiln::cuda {

struct CublasLtApi {
#define KILN_MEMBER(member, function) decltype(&::function) member = nullptr;
  KILN_CUBLASLT_FUNCTIONS(KILN_MEMBER)
#undef KILN_MEMBER
};

// Opens libcublasLt.so.13 or libcublasLt.so.12. kUnsupported where there is neither.
Result<CublasLtApi> open_cublaslt();

// `what` failed: "cublasLtMatmul". Refusals of a problem are kUnsupported, so that a caller can try
// another algorithm; all others are kDevice or kOutOfMemory.
Result<> check(const CublasLtApi& cublaslt, cublasStatus_t status, const std::string& what);

}  // namespace kiln::cuda
