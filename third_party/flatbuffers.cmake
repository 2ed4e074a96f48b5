# Header-only at run time; flatc must be of the headers' version, so both come from one package.
find_path(KILN_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h)
find_program(KILN_FLATC flatc)
if(NOT KILN_FLATBUFFERS_INCLUDE OR NOT KILN_FLATC)
  message(FATAL_ERROR "flatbuffers: headers or flatc not found; run third_party/bootstrap.sh")
endif()
add_library(third_party::flatbuffers INTERFACE IMPORTED GLOBAL)
target_include_directories(third_party::flatbuffers INTERFACE ${KILN_FLATBUFFERS_INCLUDE})

# kiln_flatbuffers(TARGET schema.fbs...): "formats/x/plan.fbs" is included by TARGET's sources as
# "formats/x/plan_generated.h".
# kiln_generated makes all such headers, for tools that read sources without compiling them.
add_custom_target(kiln_generated)

function(kiln_flatbuffers target)
  set(headers)
  foreach(schema IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH schema)
    cmake_path(RELATIVE_PATH schema BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE inner)
    cmake_path(GET inner PARENT_PATH folder)
    cmake_path(GET inner STEM name)
    set(out ${PROJECT_BINARY_DIR}/generated/${folder})
    add_custom_command(
      OUTPUT ${out}/${name}_generated.h
      COMMAND ${KILN_FLATC} --cpp --cpp-std c++17 --scoped-enums -o ${out} ${schema}
      DEPENDS ${schema}
      COMMENT "flatc ${inner}")
    list(APPEND headers ${out}/${name}_generated.h)
  endforeach()
  target_sources(${target} PRIVATE ${headers})
  add_custom_target(${target}_generated DEPENDS ${headers})
  add_dependencies(kiln_generated ${target}_generated)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:third_party::flatbuffers>)
  target_include_directories(${target} SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()
