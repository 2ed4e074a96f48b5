# kiln_embed(TARGET NAMESPACE FUNCTION FILE): the text of FILE as `std::string_view FUNCTION()` of
# NAMESPACE, in a source of TARGET. The declaration is written by hand.
function(kiln_embed target namespace function file)
  cmake_path(ABSOLUTE_PATH file OUTPUT_VARIABLE input)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${function}.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D INPUT=${input} -D OUTPUT=${output} -D NAMESPACE=${namespace}
            -D FUNCTION=${function} -P ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    DEPENDS ${input} ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    COMMENT "Embedding ${file}" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
