# tests/discover_suites.cmake on a program that says what GoogleTest says: what fails is never shown as skipped.
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(program "${WORK}/program.sh")
file(WRITE "${program}" [=[#!/bin/sh
passed() { echo "[==========] 2 tests from 1 test suite ran. (1 ms total)"; echo "[  PASSED  ] $1 test${2}."; }
case $1 in
  --gtest_list_tests)
    printf 'Running main() from gtest_main.cc\nGood.\n  A\n  B\nAll/Bad/0.  # TypeParam = [;\n  A/0  # GetParam() = 1.5\n' ;
    printf 'Absent.\n  A\nMixed.\n  A\n  B\nCrash.\n  A\n' ;;
  '--gtest_filter=Good.*') passed 2 s ;;
  '--gtest_filter=All/Bad/0.*') passed 0 s; echo "[  FAILED  ] 1 test, listed below:"; echo "[  FAILED  ] All/Bad/0.A"; exit 1 ;;
  '--gtest_filter=Absent.*') passed 0 s; echo "[  SKIPPED ] 1 test, listed below:"; echo "[  SKIPPED ] Absent.A" ;;
  '--gtest_filter=Mixed.*')
    passed 0 s; echo "[  SKIPPED ] 1 test, listed below:"; echo "[  SKIPPED ] Mixed.A";
    echo "[  FAILED  ] 1 test, listed below:"; echo "[  FAILED  ] Mixed.B"; exit 1 ;;
  '--gtest_filter=Crash.*') kill -SEGV $$ ;;
  *) exit 3 ;;
esac
]=])
file(CHMOD "${program}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
file(WRITE "${WORK}/CTestTestfile.cmake"
  "set(program \"${program}\")\nset(name n)\nset(label l)\ninclude(\"${DISCOVER}\")\n")
execute_process(COMMAND "${CTEST}" WORKING_DIRECTORY "${WORK}"
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
foreach(line "n.Good [.]+ +Passed" "n.All/Bad/0 [.]+[*]+Failed" "n.Absent [.]+[*]+Skipped"
    "n.Mixed [.]+[*]+Failed" "n.Crash [.]+[*]+Exception")
  if(NOT output MATCHES "${line}")
    message(FATAL_ERROR "Expected '${line}' in\n${output}")
  endif()
endforeach()
if(status EQUAL 0)
  message(FATAL_ERROR "Suites failed and ctest says they did not\n${output}")
endif()
