// Step kind: a matmul of cuBLASLt. Its operation: engine/cuda/matmul/operation.h; its inputs: a, b,
// then the bias, then the residual, where there are any. The output may be the residual's buffer.
#pragma once
#include "engine/cuda/matmul/operation.h"
#include "engine/cuda/steps/device_resources.h"
#include "engine/steps/spaces.h"

namespace kiln::cuda {

struct PreparedMatmul {
  const plan::Matmul* step = nullptr;
  std::shared_ptr<const Device> device;
  MatmulProblem problem;
  cublasLtMatmulAlgo_t algorithm = {};
};

// kCorruptData: the operation does not fit its operands. kVersionMismatch: this cuBLASLt does not
// have the algorithm that another version chose. kUnsupported: no cuBLASLt.
Result<PreparedMatmul> prepare_step(const plan::Matmul& step, const DeviceResources& resources);
Result<> enqueue_step(const PreparedMatmul& step, const Spaces& spaces, CUstream stream);

}  // namespace kiln::cuda
