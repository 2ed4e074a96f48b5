#include "engine/cuda/driver_api.h"

#include <array>
#include <string>

#include "engine/cuda/shared_library.h"

namespace kiln::cuda {

// cuda.h defines the functions' names as macros of their current versions.
#define KILN_TEXT_OF(name) #name
#define KILN_TEXT(name) KILN_TEXT_OF(name)

Result<DriverApi> open_driver() {
  constexpr std::array kNames = {"libcuda.so.1"};
  KILN_ASSIGN_OR_RETURN(const SharedLibrary library, SharedLibrary::open(kNames));
  DriverApi driver;
#define KILN_BIND(member, function) \
  KILN_RETURN_IF_ERROR(library.bind(KILN_TEXT(function), driver.member));
  KILN_CUDA_DRIVER_FUNCTIONS(KILN_BIND)
#undef KILN_BIND
  static_cast<void>(library.bind("cuTensorMapEncodeTiled", driver.tensor_map_encode_tiled));
  static_cast<void>(library.bind("cuFuncGetParamInfo", driver.func_get_param_info));
  static_cast<void>(library.bind("cuStreamGetCaptureInfo_v3", driver.stream_get_capture_info));
  return driver;
}

std::string error_text(const DriverApi& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.get_error_name(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return "CUDA error " + std::to_string(static_cast<int>(result));
  }
  if (driver.get_error_string(result, &text) != CUDA_SUCCESS || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

Result<> check(const DriverApi& driver, CUresult result, const std::string& what) {
  if (result == CUDA_SUCCESS) return Ok();
  const bool memory = result == CUDA_ERROR_OUT_OF_MEMORY;
  return Error{memory ? ErrorCode::kOutOfMemory : ErrorCode::kDevice,
               what + " failed: " + error_text(driver, result)};
}

}  // namespace kiln::cuda
