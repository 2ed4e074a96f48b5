// Step kind: the execution of a cuDNN plan.
//
// Its Operation is "cudnn.graph" with the attributes
//   plan         the plan as cuDNN writes it (CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION); one
//                whose engine compiles its kernel loads only where NVRTC is, so the builder
//                chooses none
//   uids         the plan's id of each operand, inputs first
//   offsets      where the plan's tensor starts in each operand, in bytes, as uids
//   bytes        how many bytes from there it spans
//   scalar_uids  ids of the f32 scalars that are passed by value
//   scalars      their values
//   version      cudnnGetVersion() of the cuDNN that wrote the plan; others cannot be trusted with
//   it
#pragma once
#include <vector>

#include "engine/cuda/cudnn_descriptor.h"
#include "engine/cuda/steps/device_resources.h"
#include "engine/steps/spaces.h"
#include "formats/operation/operation.h"

namespace kiln::cuda {

inline constexpr const char* kCudnnGraphOperation = "cudnn.graph";

// What the operation says, checked against the step's operands.
struct CudnnCall {
  std::string plan;
  std::vector<int64_t> uids, offsets, scalar_uids;
  std::vector<float> scalars;
  uint64_t version = 0;
};

// kCorruptData: another operation, or one that does not fit the step's operands.
Result<CudnnCall> decode_cudnn_call(const Operation& operation, const plan::CudnnGraph& step);

// kVersionMismatch: another cuDNN; kCorruptData: it refuses the plan, or the plan needs more
// workspace than the step has.
Result<CudnnDescriptor> load_cudnn_plan(const CudnnApi& cudnn, cudnnHandle_t handle,
                                        const CudnnCall& call, const plan::CudnnGraph& step);

struct PreparedCudnnGraph {
  const plan::CudnnGraph* step = nullptr;
  CudnnHandle* cudnn = nullptr;
  CudnnCall call;
  CudnnDescriptor plan;
};

Result<PreparedCudnnGraph> prepare_step(const plan::CudnnGraph& step,
                                        const DeviceResources& resources);
// REQUIRES: the stream is the device's for captures.
Result<> enqueue_step(const PreparedCudnnGraph& step, const Spaces& spaces, CUstream stream);

}  // namespace kiln::cuda
