// MatmulAlgorithm: which of cuBLASLt's kernels computes a problem, and how.
#pragma once
#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/cuda/cublaslt_api.h"
#include "engine/cuda/matmul/problem.h"

namespace kiln::cuda {

struct MatmulAlgorithm {
  // By cublasLtMatmulAlgoConfigAttributes_t: id, tile, split-K, reduction, swizzle, custom option,
  // stages, inner shape, cluster shape.
  static constexpr size_t kFields = 9;
  std::array<uint32_t, kFields> config = {};
  // cuBLASLt's own description, where the fields above do not say all of it. Only the version that
  // wrote it can read it.
  std::optional<std::array<uint64_t, 8>> opaque;
  uint64_t workspace_bytes = 0;
  uint64_t version = 0;  // cublasLtGetVersion() of the library that chose it: 130100
  friend bool operator==(const MatmulAlgorithm&, const MatmulAlgorithm&) = default;
};

// "a66.t20.k1.r0.s0.c0.g35.i0.l3.w8388608.v130100", then ".x" and the opaque words in hex where
// there are some. Equal algorithms have equal texts.
std::string to_string(const MatmulAlgorithm& algorithm);
// The inverse; nullopt for anything else.
std::optional<MatmulAlgorithm> parse_matmul_algorithm(std::string_view text);

// The algorithm as cuBLASLt takes it. kUnsupported: this version has no such algorithm.
Result<cublasLtMatmulAlgo_t> make_algorithm(const CublasLtApi& cublaslt, cublasLtHandle_t handle,
                                            const MatmulProblem& problem,
                                            const MatmulAlgorithm& algorithm);
// What cuBLASLt chose, in our words. It keeps the opaque words only if make_algorithm() does not
// arrive at them without.
Result<MatmulAlgorithm> describe_algorithm(const CublasLtApi& cublaslt, cublasLtHandle_t handle,
                                           const MatmulProblem& problem,
                                           const cublasLtMatmulAlgo_t& chosen,
                                           uint64_t workspace_bytes);

}  // namespace kiln::cuda
