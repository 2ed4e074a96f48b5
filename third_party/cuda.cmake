# Optional: without them only the host target is built. Reported here, used by the CUDA target.
find_package(CUDAToolkit 12.0 QUIET)
find_path(KILN_CUDNN_INCLUDE cudnn.h PATHS ${CUDAToolkit_INCLUDE_DIRS})
find_path(KILN_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h)
foreach(row "CUDA Toolkit|${CUDAToolkit_VERSION}" "cuDNN|${KILN_CUDNN_INCLUDE}"
            "cuDNN frontend|${KILN_CUDNN_FRONTEND_INCLUDE}")
  string(REPLACE "|" ";" row "${row}")
  list(GET row 0 name)
  list(GET row 1 found)
  if(NOT found OR found MATCHES "NOTFOUND$")
    set(found "not found")
  endif()
  message(STATUS "${name}: ${found}")
endforeach()
