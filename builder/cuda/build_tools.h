// CudaTools: the GPU and the libraries that tactics for it are made and tried with. This header
// needs no CUDA header, so that TacticQuery can name it where the toolkit is absent.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "builder/device/device.h"
#include "builder/device/device_answers.h"
#include "formats/result.h"

namespace kiln {

namespace cuda {
class Device;
}  // namespace cuda

class KernelCompiler;

// One for each build, whose thread alone asks for tactics.
struct CudaTools {
  // Null: the GPU is elsewhere, what it would say comes from `answers` alone.
  std::shared_ptr<const cuda::Device> device;
  std::shared_ptr<KernelCompiler> compiler;
  // Of the libraries, recorded before or asked for now.
  std::shared_ptr<DeviceAnswers> answers = std::make_shared<DeviceAnswers>();
  bool allow_tf32 = false;  // f32 contractions may round their operands to TF32
};

// Calls `lower`, which gets kernels without code, and then compiles all these kernels at once, on
// `threads` threads: whoever lowers the same again finds them ready.
void compile_ahead(const CudaTools& tools, int threads, const std::function<void()>& lower);

}  // namespace kiln
