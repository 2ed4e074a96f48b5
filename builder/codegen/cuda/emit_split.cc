#include "builder/codegen/cuda/kernel_text.h"
#include "builder/codegen/cuda/split_reduction.h"

namespace kiln::codegen {
namespace {

std::string parameters_of(const loop::LoopKernel& kernel) {
  std::string text;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    text += kernel.buffers[b].output ? "void* q" : "const void* q";
    text += std::to_string(b) + ", ";
  }
  return text + "char* workspace";
}

std::string prologue_of(const PartKernel& part) {
  std::string text;
  for (size_t b = 0; b < part.places.size(); ++b) {
    const PartKernel::Place& place = part.places[b];
    const std::string at = std::to_string(place.at);
    text += part.kernel.buffers[b].output ? "  void* b" : "  const void* b";
    text +=
        std::to_string(b) + " = " + (place.in_workspace ? "workspace + " + at : "q" + at) + ";\n";
  }
  return text;
}

}  // namespace

Result<CudaSource> emit_split(const loop::LoopKernel& kernel, const CudaSchedule& schedule) {
  KILN_ASSIGN_OR_RETURN(const SplitKernels split, split_reductions(kernel, schedule.group));
  CudaSource source;
  source.workspace_bytes = split.workspace_bytes;
  for (const PartKernel& part : split.parts) {
    KernelFrame frame{"kiln_split_" + std::to_string(source.launches.size()), parameters_of(kernel),
                      prologue_of(part)};
    // Parts have rows enough: the best guess for each of them is no split.
    const CudaSchedule best = cuda_schedules(part.kernel, {}).front();
    if (best.family == Family::kSplit) return unsuited(schedule, "a part asks for a split");
    KILN_ASSIGN_OR_RETURN(CudaSource made, emit_framed(part.kernel, best, frame));
    source.text += made.text;
    for (CudaLaunch& launch : made.launches) source.launches.push_back(std::move(launch));
  }
  return source;
}

}  // namespace kiln::codegen
