# What `cmake --install` gives and find_package(kiln) finds: static libraries and public headers.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)

install(TARGETS kiln_formats kiln_npy kiln_engine kiln_host kiln_builder EXPORT kiln
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT kiln NAMESPACE kiln:: FILE kiln-targets.cmake DESTINATION ${package})

# Files directly in a room are its public headers.
foreach(room formats plugins engine builder)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${room}/*.h)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln/${room})
endforeach()

# The installed ONNX reader carries ONNX and protobuf inside, under names that meet no other copy.
get_target_property(type kiln_onnx TYPE)
if(type STREQUAL STATIC_LIBRARY)
  set(sealed ${PROJECT_BINARY_DIR}/sealed/libkiln_onnx.a)
  add_custom_command(
    OUTPUT ${sealed}
    COMMAND ${PROJECT_SOURCE_DIR}/third_party/seal_archive.sh ${sealed} $<TARGET_FILE:kiln_onnx>
            ${KILN_ONNX_ROOT}/lib/libonnx.a ${KILN_PROTOBUF_ARCHIVE}
    DEPENDS kiln_onnx ${PROJECT_SOURCE_DIR}/third_party/seal_archive.sh
    COMMENT "Sealing ONNX and protobuf into libkiln_onnx.a")
  add_custom_target(kiln_onnx_sealed ALL DEPENDS ${sealed})
  install(FILES ${sealed} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/kiln-config.cmake.in ${PROJECT_BINARY_DIR}/kiln-config.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kiln-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kiln-config.cmake
              ${PROJECT_BINARY_DIR}/kiln-config-version.cmake DESTINATION ${package})
