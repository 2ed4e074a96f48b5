#include "builder/device/device_fields.h"

#include "formats/version.h"

namespace kiln {
namespace {

// Calls visit(name, field) for every number that describes a GPU.
template <class Device, class Visit>
void each_field(Device& device, const Visit& visit) {
  visit("compute_capability", device.compute_capability);
  visit("multiprocessors", device.multiprocessors);
  visit("memory_bytes", device.memory_bytes);
  visit("l2_bytes", device.l2_bytes);
  visit("sm_khz", device.sm_khz);
  visit("memory_khz", device.memory_khz);
  visit("memory_bus_bits", device.memory_bus_bits);
  visit("driver_version", device.driver_version);
  visit("cuda_version", device.cuda_version);
  visit("cublaslt_version", device.cublaslt_version);
  visit("cudnn_version", device.cudnn_version);
}

}  // namespace

std::map<std::string, uint64_t> device_fields(const DeviceInfo& device) {
  std::map<std::string, uint64_t> fields;
  each_field(device, [&](const char* name, uint64_t value) { fields[name] = value; });
  return fields;
}

DeviceInfo device_of(const std::string& name, const std::map<std::string, uint64_t>& fields) {
  DeviceInfo device = host_device();
  device.target = plan::Target::kCuda;
  device.name = name;
  each_field(device, [&](const char* field, auto& value) {
    const auto found = fields.find(field);
    value = static_cast<std::remove_reference_t<decltype(value)>>(
        found == fields.end() ? 0 : found->second);
  });
  return device;
}

std::string environment_of(const DeviceInfo& device, bool allow_tf32) {
  // Raised when what counts as right, or how it is timed, changes: older timings are not used.
  constexpr int kJudging = 3;
  const std::string kiln =
      std::string("; kiln ") + kVersion + "; judging " + std::to_string(kJudging);
  if (device.target == plan::Target::kHost) {
    return "host; " + device.name + "; " + std::to_string(device.threads) + " threads" + kiln;
  }
  return "cuda; " + device.name + "; driver " + std::to_string(device.driver_version) + "; cuda " +
         std::to_string(device.cuda_version) + "; cublaslt " +
         std::to_string(device.cublaslt_version) + "; cudnn " +
         std::to_string(device.cudnn_version) + (allow_tf32 ? "; tf32" : "") + kiln;
}

}  // namespace kiln
