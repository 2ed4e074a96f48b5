# ONNX's C++ library over the distribution's static protobuf, built by bootstrap.sh.
execute_process(
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/bootstrap.sh --onnx-prefix
  OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(KILN_ONNX_ROOT ${prefix} CACHE PATH "Where ONNX's C++ library is installed")
if(NOT EXISTS ${KILN_ONNX_ROOT}/lib/libonnx.a)
  message(FATAL_ERROR "onnx: ${KILN_ONNX_ROOT}/lib/libonnx.a not found; "
                      "run third_party/bootstrap.sh")
endif()
find_path(KILN_PROTOBUF_INCLUDE google/protobuf/message.h REQUIRED)
find_library(KILN_PROTOBUF_ARCHIVE NAMES libprotobuf.a REQUIRED)
find_package(Threads REQUIRED)

# The operator schemas register themselves, so the archive is linked whole; no symbol of it or of
# protobuf leaves the program that links it, which may hold another protobuf.
add_library(third_party::onnx INTERFACE IMPORTED GLOBAL)
target_include_directories(third_party::onnx INTERFACE ${KILN_ONNX_ROOT}/include
                                                       ${KILN_PROTOBUF_INCLUDE})
target_compile_definitions(third_party::onnx INTERFACE ONNX_NAMESPACE=onnx ONNX_ML=1)
target_link_libraries(
  third_party::onnx
  INTERFACE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${KILN_ONNX_ROOT}/lib/libonnx.a>"
            ${KILN_PROTOBUF_ARCHIVE} Threads::Threads)
target_link_options(third_party::onnx INTERFACE
                    "LINKER:--exclude-libs,libonnx.a:libprotobuf.a")
