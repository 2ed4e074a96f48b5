#include "engine/cuda/steps/device_copy.h"

#include "engine/cuda/addresses.h"

namespace kiln::cuda {

Result<PreparedCopy> prepare_step(const plan::Copy& step, const DeviceResources& resources) {
  return PreparedCopy{&step, resources.device};
}

Result<> enqueue_step(const PreparedCopy& step, const Spaces& spaces, CUstream stream) {
  if (step.step->to.bytes == 0) return Ok();
  return step.device->check(
      step.device->driver().memcpy_async(address_of(spaces.write(step.step->to)),
                                         address_of(spaces.read(step.step->from)),
                                         step.step->to.bytes, stream),
      "copy of " + std::to_string(step.step->to.bytes) + " bytes");
}

}  // namespace kiln::cuda
