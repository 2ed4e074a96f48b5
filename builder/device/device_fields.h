// DeviceInfo as a timing cache's environment keeps it, and the environment's name.
#pragma once
#include <map>
#include <string>

#include "builder/device/device.h"

namespace kiln {

// All of a GPU but its name, by the field's name.
std::map<std::string, uint64_t> device_fields(const DeviceInfo& device);
// The inverse, on this machine's threads; fields that are absent are 0.
DeviceInfo device_of(const std::string& name, const std::map<std::string, uint64_t>& fields);

// Everything outside of a region that its time depends on: "cuda; NVIDIA H200; driver 13000; ...".
std::string environment_of(const DeviceInfo& device, bool allow_tf32);

}  // namespace kiln
