# nsimplex_add_suites(PROGRAM LABEL [EMULATOR...]): one test of ctest per suite of a GoogleTest program, named
# PROGRAM:SUITE. A process that loads LibTorch takes 0.3 s to start, which is longer than most single tests run. ctest
# itself calls this (see nsimplex_test), so that the program is asked for its suites when it is there.
function(nsimplex_add_suites program label)
  get_filename_component(name "${program}" NAME)
  if(NOT EXISTS "${program}")
    add_test("${name}" "${program}")  # ctest reports that it was not built
    return()
  endif()
  execute_process(COMMAND ${ARGN} "${program}" --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "\n[A-Za-z0-9_/]+[.]" suites "\n${listed}")
  foreach(suite IN LISTS suites)
    string(REGEX REPLACE "[\n.]" "" suite "${suite}")
    add_test("${name}:${suite}" ${ARGN} "${program}" "--gtest_filter=${suite}.*" --gtest_brief=1)
    set_tests_properties("${name}:${suite}" PROPERTIES LABELS "${label}")
  endforeach()
endfunction()
