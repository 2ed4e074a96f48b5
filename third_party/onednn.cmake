# Matrix products and convolutions of the host target. Debian's package file asks for OpenCL's
# development files, which nothing here needs, so header and library are looked for directly.
find_path(KILN_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(KILN_ONEDNN_LIBRARY dnnl)
if(NOT KILN_ONEDNN_INCLUDE OR NOT KILN_ONEDNN_LIBRARY)
  message(FATAL_ERROR "oneDNN: headers or library not found; run third_party/bootstrap.sh")
endif()
add_library(third_party::onednn UNKNOWN IMPORTED GLOBAL)
set_target_properties(third_party::onednn PROPERTIES
  IMPORTED_LOCATION ${KILN_ONEDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${KILN_ONEDNN_INCLUDE})
