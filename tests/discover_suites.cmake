# Read by ctest with `program`, `name` and `label` set: one test for each suite of a GoogleTest program,
# NAME.SUITE. What takes longer to start than to test (LibTorch: 0.7 s) is started once a suite, not once a
# test. A suite is skipped when all of its tests were and nothing else was said behind that: to ctest a match is
# more than an exit status, and GoogleTest counts passed tests where all failed, too.
if(NOT EXISTS "${program}")
  add_test("${name}_NOT_BUILT" "${name}_NOT_BUILT")
  set_tests_properties("${name}_NOT_BUILT" PROPERTIES LABELS "${label}")
  return()
endif()
execute_process(COMMAND "${program}" --gtest_list_tests
  OUTPUT_VARIABLE list ERROR_VARIABLE errors RESULT_VARIABLE code TIMEOUT 120)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${program} cannot list its tests (${code}): ${errors}")
endif()
# A suite's line begins with its name and a dot, its tests' lines with spaces.
string(REGEX MATCHALL "\n[A-Za-z0-9_/]+\\." suites "\n${list}")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "^\n(.*)\\.$" "\\1" suite "${suite}")
  add_test("${name}.${suite}" "${program}" "--gtest_filter=${suite}.*")
  set_tests_properties("${name}.${suite}" PROPERTIES LABELS "${label}" TIMEOUT 1200
    SKIP_REGULAR_EXPRESSION "\\[  PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\][^\n]*\n)+$")
endforeach()
