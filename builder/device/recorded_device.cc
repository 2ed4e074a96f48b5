#include "builder/device/recorded_device.h"

#include <optional>
#include <set>
#include <tuple>

#include "builder/device/device_fields.h"

namespace kiln {
namespace {

std::string capability_of(const DeviceInfo& device) {
  return "sm_" + std::to_string(device.compute_capability);
}

auto versions_of(const DeviceInfo& device) {
  return std::tuple(device.driver_version, device.cuda_version, device.cublaslt_version,
                    device.cudnn_version);
}

// "'a', 'b'"
std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

Error none_fits(const std::string& wanted, const std::set<std::string>& others,
                const std::set<std::string>& unusable) {
  std::string message = "describes no GPU '" + wanted + "' that this builder can use";
  if (!others.empty()) message += ", only " + listed(others);
  if (!unusable.empty()) {
    message += "; " + listed(unusable) +
               " was recorded by another version of Kiln, in another precision, or without its "
               "description";
  }
  return {ErrorCode::kUnsupported, message + "; build once on the GPU with this timing cache"};
}

}  // namespace

Result<DeviceInfo> recorded_device(const TimingCache& cache, const std::string& wanted,
                                   bool allow_tf32) {
  std::optional<DeviceInfo> found;
  std::set<std::string> names, others, unusable;
  for (const auto& [name, environment] : cache.environments) {
    const DeviceInfo device = device_of(environment.device_name, environment.device);
    const bool described = device.compute_capability != 0;
    if (described && wanted != capability_of(device) && wanted != device.name) {
      others.insert(device.name + " (" + capability_of(device) + ")");
      continue;
    }
    if (!described || name != environment_of(device, allow_tf32)) {
      if (name.starts_with("cuda;")) unusable.insert(name);
      continue;
    }
    names.insert(device.name);
    if (!found || versions_of(*found) < versions_of(device)) found = device;
  }
  if (!found) return none_fits(wanted, others, unusable);
  if (names.size() > 1) {
    return Error{ErrorCode::kUnsupported, "describes several GPUs '" + wanted + "': " +
                                              listed(names) + "; give --target one of the names"};
  }
  return *found;
}

}  // namespace kiln
