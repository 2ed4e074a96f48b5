// Plans of cuDNN for a problem: the engines that its heuristics propose, and one of them made ready
// to be stored.
#pragma once
#include <string>
#include <vector>

#include "builder/tactics/cuda/cudnn_problem.h"
#include "engine/cuda/cudnn_descriptor.h"

namespace kiln {

// What plans are made for: a GPU here, or one described (cuDNN calls that deviceless).
class CudnnTarget {
 public:
  // The GPU of the handle.
  static Result<CudnnTarget> of_handle(const cuda::CudnnApi& cudnn, cudnnHandle_t handle);
  // As CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION describes it.
  static Result<CudnnTarget> of_description(const cuda::CudnnApi& cudnn, const std::string& json);

  const cuda::CudnnApi& cudnn() const { return *cudnn_; }
  const cuda::CudnnDescriptor& device() const { return device_; }

 private:
  CudnnTarget(const cuda::CudnnApi& cudnn, cuda::CudnnDescriptor device)
      : cudnn_(&cudnn), device_(std::move(device)) {}
  const cuda::CudnnApi* cudnn_;
  cuda::CudnnDescriptor device_;
};

struct CudnnLimits {
  size_t engines = 8;  // at most, best first
  // Engines that round f32 operands to TF32.
  bool allow_tf32 = false;
};

// Engine and knobs, "e41.t16.k2": all that makes a plan from a problem. Best first; a plan that is
// not deterministic, reduces in less than f32 or is loaded only where NVRTC is, is not among them.
// Empty: no engine takes it.
Result<std::vector<std::string>> cudnn_engines(const CudnnTarget& target,
                                               const CudnnProblem& problem,
                                               const CudnnLimits& limits);

struct CudnnPlan {
  std::string json;  // as cuDNN reads it back
  uint64_t workspace_bytes = 0;
  bool tf32 = false;     // rounds f32 operands to TF32
  uint64_t version = 0;  // cudnnGetVersion() of the cuDNN that made it: 91900
};

// kUnsupported: the engine refuses the problem, or `engine` is no such text.
Result<CudnnPlan> make_cudnn_plan(const CudnnTarget& target, const CudnnProblem& problem,
                                  const std::string& engine);

}  // namespace kiln
