#include "builder/cuda/build_tools.h"

#include "builder/cuda/kernel_compiler.h"

namespace kiln {

void compile_ahead(const CudaTools& tools, int threads, const std::function<void()>& lower) {
  if (!tools.compiler) return;
  tools.compiler->cache().note();
  lower();
  tools.compiler->cache().compile_noted(threads);
}

}  // namespace kiln
