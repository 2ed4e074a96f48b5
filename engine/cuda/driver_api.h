// DriverApi: the functions of the CUDA driver that Kiln calls.
#pragma once
#include <cuda.h>

#include "formats/result.h"

// X(member, function), the function under the name that cuda.h gives its current version.
// clang-format off
#define KILN_CUDA_DRIVER_FUNCTIONS(X)                    \
  X(init, cuInit)                                        \
  X(driver_get_version, cuDriverGetVersion)              \
  X(get_error_name, cuGetErrorName)                      \
  X(get_error_string, cuGetErrorString)                  \
  X(device_get_count, cuDeviceGetCount)                  \
  X(device_get, cuDeviceGet)                             \
  X(device_get_name, cuDeviceGetName)                    \
  X(device_get_attribute, cuDeviceGetAttribute)          \
  X(device_total_mem, cuDeviceTotalMem)                  \
  X(device_get_pci_bus_id, cuDeviceGetPCIBusId)          \
  X(primary_ctx_retain, cuDevicePrimaryCtxRetain)        \
  X(primary_ctx_release, cuDevicePrimaryCtxRelease)      \
  X(ctx_push_current, cuCtxPushCurrent)                  \
  X(ctx_pop_current, cuCtxPopCurrent)                    \
  X(mem_get_info, cuMemGetInfo)                          \
  X(mem_alloc, cuMemAlloc)                               \
  X(mem_free, cuMemFree)                                 \
  X(mem_host_alloc, cuMemHostAlloc)                      \
  X(mem_free_host, cuMemFreeHost)                        \
  X(memcpy_async, cuMemcpyAsync)                         \
  X(memcpy_2d_async, cuMemcpy2DAsync)                    \
  X(memset_async, cuMemsetD8Async)                       \
  X(pointer_get_attribute, cuPointerGetAttribute)        \
  X(module_load_data, cuModuleLoadData)                  \
  X(module_unload, cuModuleUnload)                       \
  X(module_get_function, cuModuleGetFunction)            \
  X(func_set_attribute, cuFuncSetAttribute)              \
  X(launch_kernel_ex, cuLaunchKernelEx)                  \
  X(stream_create, cuStreamCreate)                       \
  X(stream_destroy, cuStreamDestroy)                     \
  X(stream_synchronize, cuStreamSynchronize)             \
  X(stream_wait_event, cuStreamWaitEvent)                \
  X(stream_begin_capture, cuStreamBeginCapture)          \
  X(stream_end_capture, cuStreamEndCapture)              \
  X(event_create, cuEventCreate)                         \
  X(event_destroy, cuEventDestroy)                       \
  X(event_record, cuEventRecord)                         \
  X(event_synchronize, cuEventSynchronize)               \
  X(event_elapsed_time, cuEventElapsedTime)              \
  X(graph_destroy, cuGraphDestroy)                       \
  X(graph_instantiate, cuGraphInstantiate)               \
  X(graph_upload, cuGraphUpload)                         \
  X(graph_launch, cuGraphLaunch)                         \
  X(graph_exec_destroy, cuGraphExecDestroy)              \
  X(graph_node_get_type, cuGraphNodeGetType)             \
  X(graph_exec_set_kernel, cuGraphExecKernelNodeSetParams)
// clang-format on

namespace kiln::cuda {

struct DriverApi {
#define KILN_MEMBER(member, function) decltype(&::function) member = nullptr;
  KILN_CUDA_DRIVER_FUNCTIONS(KILN_MEMBER)
#undef KILN_MEMBER
  // Drivers have it from 12.0 on; or null.
  decltype(&::cuTensorMapEncodeTiled) tensor_map_encode_tiled = nullptr;
  // cuFuncGetParamInfo, which drivers have from 12.4 on and toolkits declare from then on; or null.
  CUresult(CUDAAPI* func_get_param_info)(CUfunction function, size_t parameter, size_t* offset,
                                         size_t* bytes) = nullptr;
  // cuStreamGetCaptureInfo as drivers have it from 12.3 on, whatever the toolkit declares; or null.
  CUresult(CUDAAPI* stream_get_capture_info)(CUstream stream, CUstreamCaptureStatus* status,
                                             cuuint64_t* id, CUgraph* graph,
                                             const CUgraphNode** dependencies, const void** edges,
                                             size_t* count) = nullptr;
};

// Opens libcuda.so.1. kUnsupported where there is none.
Result<DriverApi> open_driver();

// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
std::string error_text(const DriverApi& driver, CUresult result);

// `what` failed: "cuMemAlloc of 12 bytes". Out of memory has its own code, all others are kDevice.
Result<> check(const DriverApi& driver, CUresult result, const std::string& what);

}  // namespace kiln::cuda
