// A CudnnProblem as cuDNN's own descriptors.
#pragma once
#include <vector>

#include "builder/tactics/cuda/cudnn_problem.h"
#include "engine/cuda/cudnn_descriptor.h"

namespace kiln {

// The graph and what it refers to, which must live as long.
struct CudnnOperationGraph {
  std::vector<cuda::CudnnDescriptor> parts;
  cuda::CudnnDescriptor graph;
};

// kUnsupported: a dtype that cuDNN does not know, or a combination that it refuses.
Result<CudnnOperationGraph> make_operation_graph(const cuda::CudnnApi& cudnn,
                                                 const CudnnProblem& problem);

}  // namespace kiln
