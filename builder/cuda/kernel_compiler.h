// KernelCompiler: device text to cubins for one build's GPU, each text compiled once.
#pragma once
#include <string>

#include "builder/codegen/cuda/compile.h"

namespace kiln {

// Thread-safe.
class KernelCompiler {
 public:
  // 90 for compute capability 9.0.
  explicit KernelCompiler(uint32_t compute_capability)
      : arch_("sm_" + std::to_string(compute_capability) + (compute_capability >= 90 ? "a" : "")),
        cache_(arch_) {}

  const std::string& arch() const { return arch_; }  // "sm_90a"
  codegen::CubinCache& cache() { return cache_; }

 private:
  std::string arch_;
  codegen::CubinCache cache_;
};

}  // namespace kiln
