// How long a finished engine takes on its device.
#pragma once
#include <span>
#include <string>

#include "builder/verify/reference.h"
#include "engine/engine.h"

namespace kiln {

// Microseconds that the shape point of that name takes on the device for these inputs, copies of
// inputs and outputs apart: the median of several rounds of runs back to back, about 50 ms in all.
// kUnsupported on target host.
Result<double> time_engine(const Engine& engine, const std::string& point,
                           std::span<const HostTensor> inputs);

}  // namespace kiln
