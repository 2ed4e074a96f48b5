#include "engine/steps/copy.h"

#include <cstring>

namespace kiln {

void run_step(const plan::Copy& step, const Spaces& spaces) {
  if (step.from.bytes == 0) return;
  std::memcpy(spaces.write(step.to), spaces.read(step.from), step.from.bytes);
}

}  // namespace kiln
