# Read by ctest itself each time it starts: a test for every suite that a program lists. Not one for
# every case: the builder's tests need most of a second to start under AddressSanitizer, far longer
# than most cases take. Suites of many cases are several tests of at most kCasesInAPart each, by
# GoogleTest's sharding, so that they use all cores.
set(kCasesInAPart 30)

# add_suite(PROGRAM ROOM SUITE CASES LABELS FOLDER)
function(add_suite program room suite cases labels folder)
  math(EXPR parts "(${cases} + ${kCasesInAPart} - 1) / ${kCasesInAPart}")
  math(EXPR last "${parts} - 1")
  foreach(part RANGE ${last})
    set(name ${room}.${suite})
    if(last)
      string(APPEND name .${part})
    endif()
    add_test(${name} ${program} --gtest_filter=${suite}.*)
    # Skipped: no case passed and none failed. A failure would be listed behind those skipped.
    set_tests_properties(
      ${name} PROPERTIES
      WORKING_DIRECTORY ${folder} TIMEOUT 900 LABELS "${labels}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${part}"
      SKIP_REGULAR_EXPRESSION "  PASSED  . 0 tests\\.\n(.  SKIPPED [^\n]*\n)+\n*$")
  endforeach()
endfunction()

# discover_suites(PROGRAM ROOM FOLDER LABELS EXTENDED): suites whose names match the regular
# expression EXTENDED have the label `extended` instead of LABELS.
function(discover_suites program room folder labels extended)
  if(NOT EXISTS ${program})
    add_test(${room}_NOT_BUILT ${program})
    return()
  endif()
  execute_process(COMMAND ${program} --gtest_list_tests WORKING_DIRECTORY ${folder}
                  OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
  # A suite's line ends in a dot; those of its cases are indented. Both may have a comment.
  string(REGEX REPLACE " +#[^\n]*" "" listed "${listed}")
  string(REGEX REPLACE "[][;]" "_" listed "${listed}")
  string(REPLACE "\n" ";" lines "${listed}")
  set(suite)
  set(cases 0)
  foreach(line IN LISTS lines ITEMS end.)
    if(line MATCHES "^  ")
      math(EXPR cases "${cases} + 1")
    elseif(line MATCHES "^([^ ]+)\\.$")
      set(next ${CMAKE_MATCH_1})
      if(cases)
        set(own "${labels}")
        if(extended AND suite MATCHES "${extended}")
          set(own extended)
        endif()
        add_suite(${program} ${room} ${suite} ${cases} "${own}" ${folder})
      endif()
      set(suite ${next})
      set(cases 0)
    endif()
  endforeach()
endfunction()
