#include "builder/codegen/cuda/prelude.h"

namespace kiln::codegen {

std::string device_prelude() {
  return std::string(device_primitives()) + std::string(device_functions());
}

}  // namespace kiln::codegen
