// Takes the place of engine/cuda where the CUDA Toolkit's headers were not found.
#include "engine/cuda/cuda_engine.h"

#include "engine/load/loaded_engine.h"

namespace kiln::cuda {

Result<std::unique_ptr<const TargetEngine>> load_cuda_engine(const LoadedEngine& engine,
                                                             const StepResources&,
                                                             const LoadOptions&) {
  return Error{
      ErrorCode::kUnsupported,
      "was built for target cuda, device '" + engine.plan.origin.device +
          "', this runtime was compiled without it; install the CUDA Toolkit and cuDNN and "
          "compile Kiln again, or build the engine with --target host"};
}

}  // namespace kiln::cuda
