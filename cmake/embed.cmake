# kiln_embed(TARGET NAMESPACE FUNCTION FILE...): the files' text, one behind the other, as
# `std::string_view FUNCTION()` of NAMESPACE, in a source of TARGET. The declaration is written by
# hand.
function(kiln_embed target namespace function)
  set(inputs ${ARGN})
  list(TRANSFORM inputs PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${function}.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D "INPUTS=${inputs}" -D OUTPUT=${output} -D NAMESPACE=${namespace}
            -D FUNCTION=${function} -P ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    COMMENT "Embedding ${function}" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
