# Runs PROGRAM --gtest_filter=FILTER and succeeds when that test fails as a test (not by a crash). Without
# a GPU it says so, and ctest counts it as skipped.
execute_process(COMMAND "${PROGRAM}" "--gtest_filter=${FILTER}"
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
if(output MATCHES "skipped: no CUDA device")
  message(STATUS "skipped: no CUDA device")
elseif(output MATCHES "there is a GPU that does not work")
  message(FATAL_ERROR "${output}")
elseif(status EQUAL 0)
  message(FATAL_ERROR "${FILTER} passes although its wait was left out:\n${output}")
elseif(NOT status EQUAL 1 OR NOT output MATCHES "\\[  FAILED  \\] ${FILTER}")
  message(FATAL_ERROR "${FILTER} ended with ${status}, which is no failed expectation:\n${output}")
else()
  message(STATUS "${FILTER} fails without its wait, as it should")
endif()
