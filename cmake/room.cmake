# kiln_room(NAME FOLDERS folder... [EXCLUDE regex] [PUBLIC library...] [PRIVATE library...])
#
# A room's static library: every .cc below its folders, so that a new file needs no build file.
# A room without sources is an interface library, so that the rooms above it still configure.
function(kiln_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCLUDE" "FOLDERS;PUBLIC;PRIVATE")
  set(sources)
  foreach(folder IN LISTS arg_FOLDERS)
    cmake_path(SET root NORMALIZE ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${root}*.cc)
    list(APPEND sources ${found})
  endforeach()
  list(REMOVE_DUPLICATES sources)
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/(${arg_EXCLUDE})")
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    kiln_compile_options(${name})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${arg_PUBLIC})
    set(scope INTERFACE)
  endif()
  target_include_directories(
    ${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                     $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kiln>)
  target_compile_features(${name} ${scope} cxx_std_20)
  string(REPLACE kiln_ "" short ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
endfunction()

# Warnings and sanitizers, for our own code only.
function(kiln_compile_options target)
  # Options structs are filled by name, {.contexts = 4}, and have defaults for the rest.
  # g++ 12 warns of overlap in every "literal" + std::string (its bug 105651) and of unset members
  # in variants that are moved.
  target_compile_options(
    ${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers
                      $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-maybe-uninitialized> $<$<BOOL:${KILN_WERROR}>:-Werror>)
  if(KILN_SANITIZE)
    set(flags -fsanitize=${KILN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(
      ${target} PRIVATE ${flags} $<$<BOOL:${KILN_FUZZ}>:-fsanitize=fuzzer-no-link>)
    target_link_options(${target} PRIVATE ${flags})
  endif()
endfunction()
