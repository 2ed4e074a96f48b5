// Asks cuBLASLt how a problem could be solved.
#pragma once
#include <vector>

#include "engine/cuda/device.h"
#include "engine/cuda/matmul/algorithm.h"

namespace kiln {

// Up to `most` different algorithms: the heuristics' best under several workspace limits, then the
// best of single algorithm ids, in turn. Sums are never kept in less than 32 bits. kUnsupported:
// cuBLASLt has none.
Result<std::vector<cuda::MatmulAlgorithm>> matmul_algorithms(cuda::CublasLtHandle& handle,
                                                             const cuda::MatmulProblem& problem,
                                                             size_t most);

}  // namespace kiln
