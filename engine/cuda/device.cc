#include "engine/cuda/device.h"

#include "engine/cuda/library_handle.h"

namespace kiln::cuda {

Result<std::shared_ptr<const Device>> Device::open(int ordinal,
                                                   std::shared_ptr<const Libraries> libraries) {
  return libraries->open_devices().get(ordinal, [&] { return open_new(ordinal, libraries); });
}

Result<std::shared_ptr<const Device>> Device::open_new(int ordinal,
                                                       std::shared_ptr<const Libraries> libraries) {
  KILN_ASSIGN_OR_RETURN(const DriverApi* driver, libraries->driver());
  KILN_RETURN_IF_ERROR(cuda::check(*driver, driver->init(0), "cuInit"));
  int count = 0;
  KILN_RETURN_IF_ERROR(cuda::check(*driver, driver->device_get_count(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count) {
    return Error{ErrorCode::kUnsupported, "GPU number " + std::to_string(ordinal) +
                                              " does not exist, the driver has " +
                                              std::to_string(count)};
  }
  auto device = std::unique_ptr<Device>(new Device());
  device->libraries_ = libraries;
  device->driver_ = driver;
  KILN_RETURN_IF_ERROR(device->check(driver->device_get(&device->device_, ordinal), "cuDeviceGet"));
  KILN_RETURN_IF_ERROR(device->read_properties(device->device_, ordinal));
  KILN_RETURN_IF_ERROR(device->check(driver->primary_ctx_retain(&device->context_, device->device_),
                                     "cuDevicePrimaryCtxRetain"));
  {
    const CurrentDevice current(*device);
    KILN_RETURN_IF_ERROR(
        device->check(driver->stream_create(&device->capture_stream_, CU_STREAM_NON_BLOCKING),
                      "cuStreamCreate for captures"));
  }
  // It lasts as long as open_devices() remembers the device, so it lets go of the libraries.
  auto close = [libraries = std::move(libraries), ordinal](const Device* open) mutable {
    const auto kept = std::move(libraries);
    delete open;
    kept->open_devices().note_closed(ordinal);
  };
  return std::shared_ptr<const Device>(device.release(), std::move(close));
}

Device::Device()
    : cublaslt_(std::make_unique<CublasLtHandle>(*this, &Libraries::cublaslt, "cuBLASLt")),
      cudnn_(std::make_unique<CudnnHandle>(*this, &Libraries::cudnn, "cuDNN")) {}

Device::~Device() {
  cublaslt_.reset();
  cudnn_.reset();
  if (capture_stream_ != nullptr) {
    const CurrentDevice current(*this);
    driver_->stream_destroy(capture_stream_);
  }
  if (context_ != nullptr) driver_->primary_ctx_release(device_);
}

Result<> Device::read_properties(CUdevice device, int ordinal) {
  properties_.ordinal = ordinal;
  char name[256] = {};
  KILN_RETURN_IF_ERROR(
      check(driver_->device_get_name(name, sizeof name - 1, device), "cuDeviceGetName"));
  properties_.name = name;
  char address[32] = {};
  KILN_RETURN_IF_ERROR(check(driver_->device_get_pci_bus_id(address, sizeof address - 1, device),
                             "cuDeviceGetPCIBusId"));
  properties_.pci_address = address;
  size_t memory = 0;
  KILN_RETURN_IF_ERROR(check(driver_->device_total_mem(&memory, device), "cuDeviceTotalMem"));
  properties_.memory_bytes = memory;
  int version = 0;
  KILN_RETURN_IF_ERROR(check(driver_->driver_get_version(&version), "cuDriverGetVersion"));
  properties_.driver_version = static_cast<uint32_t>(version);
  int values[8] = {};
  constexpr CUdevice_attribute kAttributes[] = {
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
      CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
      CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
      CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
      CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH};
  for (size_t i = 0; i < std::size(kAttributes); ++i) {
    KILN_RETURN_IF_ERROR(check(driver_->device_get_attribute(&values[i], kAttributes[i], device),
                               "cuDeviceGetAttribute"));
  }
  properties_.compute_capability = static_cast<uint32_t>(values[0] * 10 + values[1]);
  properties_.multiprocessors = static_cast<uint32_t>(values[2]);
  properties_.shared_bytes_per_block = static_cast<uint32_t>(values[3]);
  properties_.l2_bytes = static_cast<uint64_t>(values[4]);
  properties_.sm_khz = static_cast<uint32_t>(values[5]);
  properties_.memory_khz = static_cast<uint32_t>(values[6]);
  properties_.memory_bus_bits = static_cast<uint32_t>(values[7]);
  return Ok();
}

CurrentDevice::CurrentDevice(const Device& device) : device_(device) {
  pushed_ = device.driver_->ctx_push_current(device.context_) == CUDA_SUCCESS;
}

CurrentDevice::~CurrentDevice() {
  CUcontext popped = nullptr;
  if (pushed_) device_.driver_->ctx_pop_current(&popped);
}

}  // namespace kiln::cuda
