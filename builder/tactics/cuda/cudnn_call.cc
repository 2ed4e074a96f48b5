#include "builder/tactics/cuda/cudnn_call.h"

#include "engine/cuda/steps/cudnn_graph.h"

namespace kiln {
namespace {

// From the first element to behind the last.
int64_t span_bytes(const CudnnTensor& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.dims.size(); ++i) last += (tensor.dims[i] - 1) * tensor.strides[i];
  return TensorType{tensor.dtype, {last + 1}}.bytes();
}

}  // namespace

LibraryCall cudnn_call(const CudnnProblem& problem, const CudnnPlan& plan,
                       const std::vector<CudnnOperand>& operands) {
  std::vector<int64_t> uids, offsets, bytes, scalar_uids;
  std::vector<double> scalars;
  for (const CudnnOperand& operand : operands) {
    const CudnnTensor& tensor = problem.tensors[static_cast<size_t>(operand.number)];
    uids.push_back(operand.number);
    offsets.push_back(operand.offset * bits_of(tensor.dtype) / 8);
    bytes.push_back(span_bytes(tensor));
  }
  for (size_t i = 0; i < problem.tensors.size(); ++i) {
    if (!problem.tensors[i].by_value) continue;
    scalar_uids.push_back(static_cast<int64_t>(i));
    scalars.push_back(*problem.tensors[i].by_value);
  }
  LibraryCall call{LibraryCall::Library::kCudnn,
                   Operation{cuda::kCudnnGraphOperation, {}},
                   {},
                   {},
                   plan.workspace_bytes,
                   plan.tf32};
  call.operation.set("plan", plan.json)
      .set("uids", uids)
      .set("offsets", offsets)
      .set("bytes", bytes)
      .set("scalar_uids", scalar_uids)
      .set("scalars", scalars)
      .set("version", static_cast<int64_t>(plan.version));
  return call;
}

}  // namespace kiln
