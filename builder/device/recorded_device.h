// A GPU that is not here, as a timing cache describes it.
#pragma once
#include <string>

#include "builder/device/device.h"
#include "formats/result.h"
#include "formats/timing_cache/timing_cache.h"

namespace kiln {

// `wanted` is a compute capability, "sm_90", or a name, "NVIDIA H200". Of the same GPU with several
// drivers or libraries it takes the newest. kUnsupported: none is recorded for this version of
// Kiln, with those that are; or several GPUs are meant.
Result<DeviceInfo> recorded_device(const TimingCache& cache, const std::string& wanted,
                                   bool allow_tf32);

}  // namespace kiln
