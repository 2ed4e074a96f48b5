# Headers only: the runtime opens the driver, cuBLASLt and cuDNN by name when an engine needs them,
# the builder NVRTC too. Without the headers only the host target is built.
find_package(CUDAToolkit 12.0 QUIET)
find_path(KILN_CUDNN_INCLUDE cudnn.h PATHS ${CUDAToolkit_INCLUDE_DIRS})
foreach(row "CUDA Toolkit|${CUDAToolkit_VERSION}" "cuDNN|${KILN_CUDNN_INCLUDE}")
  string(REPLACE "|" ";" row "${row}")
  list(GET row 0 name)
  list(GET row 1 found)
  if(NOT found OR found MATCHES "NOTFOUND$")
    set(found "not found")
  endif()
  message(STATUS "${name}: ${found}")
endforeach()

set(KILN_CUDA OFF CACHE INTERNAL "Whether target cuda is built")
if(CUDAToolkit_FOUND AND KILN_CUDNN_INCLUDE)
  set(KILN_CUDA ON CACHE INTERNAL "Whether target cuda is built")
endif()
message(STATUS "Target cuda: ${KILN_CUDA}")

add_library(third_party_cuda INTERFACE)
add_library(third_party::cuda ALIAS third_party_cuda)
if(KILN_CUDA)
  target_include_directories(third_party_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS}
                                                               ${KILN_CUDNN_INCLUDE})
endif()
