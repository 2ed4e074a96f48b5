// CudaProgram: the steps of one shape point, made ready to run on the GPU.
//
// Runs of device steps between host steps and control flow are segments; a context captures each
// into one CUDA graph. A model without host steps is one segment, hence one graph.
#pragma once
#include <variant>
#include <vector>

#include "engine/cuda/steps/cudnn_graph.h"
#include "engine/cuda/steps/device_copy.h"
#include "engine/cuda/steps/kernel_launch.h"
#include "engine/cuda/steps/matmul.h"
#include "engine/steps/host_operation.h"
#include "engine/steps/plugin_call.h"

namespace kiln::cuda {

using PreparedStep = std::variant<PreparedKernelLaunch, PreparedMatmul, PreparedCudnnGraph,
                                  PreparedCopy, PreparedHostOperation, PreparedPluginCall,
                                  const plan::Branch*, const plan::Repeat*>;

// Device steps [first, end) of a program.
struct Segment {
  size_t first = 0, end = 0;
};

// A launch that reads inputs or writes outputs of the model, as captured.
struct IoLaunch {
  size_t step = 0;
  CUgraphNode node = nullptr;  // of the captured graph; null where the driver does not tell
};

// Immutable; run by many contexts at once.
struct CudaProgram {
  static constexpr uint32_t kNone = ~uint32_t{0};

  const plan::ShapePoint* point = nullptr;
  std::vector<PreparedStep> steps;  // as point->steps
  std::vector<Segment> segments;
  std::vector<uint32_t> segment_at;  // by step: the segment that begins there, or kNone
  uint64_t scratch_bytes = 0;        // host memory for the largest step that runs on the host
};

// The plan and everything else in the resources must outlive the program. Errors name point, step
// and region.
Result<CudaProgram> prepare_program(const plan::ShapePoint& point,
                                    const DeviceResources& device_resources,
                                    const StepResources& host_resources);

// Puts the steps of one segment into the stream. `spaces` holds device addresses. Returns its
// launches on inputs and outputs.
Result<std::vector<IoLaunch>> enqueue_segment(const CudaProgram& program, const Segment& segment,
                                              const Spaces& spaces, CUstream stream);

// The step's place in an error: "point 'b8': 'conv_1 + relu_1'".
std::string step_name(const plan::ShapePoint& point, size_t step);

}  // namespace kiln::cuda
