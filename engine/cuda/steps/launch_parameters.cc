#include "engine/cuda/steps/launch_parameters.h"

#include <array>
#include <string>

namespace kiln::cuda {
namespace {

constexpr uint64_t kBoxRowBytes = 128;

CUtensorMapDataType data_type(uint64_t element_bytes) {
  return element_bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
         : element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                              : CU_TENSOR_MAP_DATA_TYPE_UINT32;
}

// REQUIRES: check_steps() has passed the launch.
Result<CUtensorMap> encode(const Device& device, const plan::KernelLaunch& launch,
                           const plan::TensorMap& map, const void* address) {
  const DriverApi& driver = device.driver();
  const std::string what =
      "tensor map of operand " + std::to_string(map.operand) + " of '" + launch.entry + "'";
  if (driver.tensor_map_encode_tiled == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 what + ": the driver has no cuTensorMapEncodeTiled; install 12.0 or newer"};
  }
  const size_t inputs = launch.inputs.size();
  const plan::Operand& operand =
      map.operand < inputs ? launch.inputs[map.operand] : launch.outputs[map.operand - inputs];
  const uint64_t element_bytes = static_cast<uint64_t>(bits_of(operand.type.dtype)) / 8;
  const uint64_t row_bytes = map.columns * element_bytes;
  const std::array<cuuint64_t, 2> extents = {map.columns, operand.buffer.bytes / row_bytes};
  const std::array<cuuint64_t, 1> strides = {row_bytes};
  const std::array<cuuint32_t, 2> box = {static_cast<cuuint32_t>(kBoxRowBytes / element_bytes),
                                         map.box_rows};
  constexpr std::array<cuuint32_t, 2> kEachElement = {1, 1};
  CUtensorMap encoded = {};
  KILN_RETURN_IF_ERROR(
      device.check(driver.tensor_map_encode_tiled(
                       &encoded, data_type(element_bytes), 2,
                       const_cast<void*>(address),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
                       extents.data(), strides.data(), box.data(), kEachElement.data(),
                       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                   what));
  return encoded;
}

size_t address_count(const plan::KernelLaunch& launch) {
  return launch.inputs.size() + launch.outputs.size() + (launch.workspace.bytes > 0 ? 1 : 0);
}

}  // namespace

Result<LaunchParameters> LaunchParameters::make(const Device& device,
                                                const plan::KernelLaunch& launch,
                                                const Spaces& spaces) {
  LaunchParameters made;
  for (const plan::Operand& operand : launch.inputs) {
    made.addresses_.push_back(spaces.read(operand.buffer));
  }
  for (const plan::Operand& operand : launch.outputs) {
    made.addresses_.push_back(spaces.write(operand.buffer));
  }
  if (launch.workspace.bytes > 0) made.addresses_.push_back(spaces.write(launch.workspace));
  for (const plan::TensorMap& map : launch.tensor_maps) {
    KILN_ASSIGN_OR_RETURN(made.maps_.emplace_back(),
                          encode(device, launch, map, made.addresses_[map.operand]));
  }
  return made;
}

void** LaunchParameters::get() {
  pointers_.clear();
  for (const void*& address : addresses_) pointers_.push_back(static_cast<void*>(&address));
  for (CUtensorMap& map : maps_) pointers_.push_back(&map);
  return pointers_.data();
}

Result<> check_parameters(const DriverApi& driver, CUfunction function,
                          const plan::KernelLaunch& launch) {
  if (driver.func_get_param_info == nullptr) return Ok();
  const auto info = [&](size_t parameter, size_t& bytes) {
    size_t offset = 0;
    return driver.func_get_param_info(function, parameter, &offset, &bytes) == CUDA_SUCCESS;
  };
  const size_t addresses = address_count(launch), brought = addresses + launch.tensor_maps.size();
  size_t bytes = 0;
  if (info(brought, bytes)) {
    return Error{ErrorCode::kCorruptData,
                 "the kernel has more parameters than the step's " + std::to_string(brought)};
  }
  for (size_t i = 0; i < brought && info(i, bytes); ++i) {
    if (bytes == (i < addresses ? sizeof(CUdeviceptr) : sizeof(CUtensorMap))) continue;
    return Error{ErrorCode::kCorruptData, "parameter " + std::to_string(i) + " of the kernel has " +
                                              std::to_string(bytes) + " bytes, expected " +
                                              (i < addresses ? "an address" : "a tensor map")};
  }
  return Ok();
}

}  // namespace kiln::cuda
