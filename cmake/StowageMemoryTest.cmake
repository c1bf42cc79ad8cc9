# stowage_add_memory_test(): a CTest test that fails when a training step needs more memory than it may.
# Comes with find_package(Stowage); docs/ci.md describes it.
#
#   stowage_add_memory_test(
#     NAME name                 of the test, and of the suite in the JUnit file
#     [MODEL spec]              gpt2:layers=6, plugin:$<TARGET_FILE:net>, .. (generator expressions are fine)
#     [PLAN file]               run under it; then MODEL may be left out
#     [BUDGET size]             the most that the peak may be: 24GiB, 512MiB, bytes
#     [BUDGET_ON requested|active|reserved]
#     [BASELINE file]           more than it is a failure
#     [TOLERANCE share]         of the baseline that may be added, such as 1%
#     [DEVICE cpu|cuda] [BATCH n] [SEQ n] [DTYPE name] [OPTIMIZER name] [STEPS n]
#     [TIMEOUT seconds])        600 when absent
#
# MODEL or PLAN, and BUDGET or BASELINE, have to be there. Relative files are relative to the current source
# folder. The test is labelled `memory`; its JUnit file is ${CMAKE_BINARY_DIR}/stowage-memory/<name>.xml, which
# CTest attaches to what it submits. With a BASELINE there is also the target stowage_update_baselines, which
# writes the baselines of all such tests as the steps are now.

function(_stowage_find_program result)
  # Beside the package first: an older one on PATH must not answer for it.
  get_property(installed GLOBAL PROPERTY STOWAGE_PROGRAM_DIR)
  find_program(STOWAGE_PROGRAM stowage HINTS "${installed}"
    DOC "The stowage command that memory tests run")
  if(NOT STOWAGE_PROGRAM)
    message(FATAL_ERROR "stowage_add_memory_test: the program `stowage` is neither in "
      "${installed} nor on PATH; set STOWAGE_PROGRAM")
  endif()
  set(${result} "${STOWAGE_PROGRAM}" PARENT_SCOPE)
endfunction()

function(stowage_add_memory_test)
  set(passed_on BUDGET BUDGET_ON TOLERANCE DEVICE BATCH SEQ DTYPE OPTIMIZER STEPS)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;MODEL;PLAN;BASELINE;TIMEOUT;${passed_on}" "")
  set(where "stowage_add_memory_test(NAME ${ARG_NAME})")
  if(ARG_UNPARSED_ARGUMENTS)
    list(GET ARG_UNPARSED_ARGUMENTS 0 word)
    message(FATAL_ERROR "${where}: unknown argument `${word}`")
  endif()
  if(ARG_KEYWORDS_MISSING_VALUES)
    list(GET ARG_KEYWORDS_MISSING_VALUES 0 word)
    message(FATAL_ERROR "${where}: ${word} has no value")
  endif()
  if(NOT ARG_NAME)
    message(FATAL_ERROR "stowage_add_memory_test: NAME is missing")
  endif()
  if(NOT ARG_NAME MATCHES "^[A-Za-z0-9_.+-]+$")
    message(FATAL_ERROR "${where}: a name is made of letters, digits and the characters . _ + -, "
      "since a file is named after it")
  endif()
  if(TEST ${ARG_NAME})
    message(FATAL_ERROR "${where}: there is a test of that name already")
  endif()
  if(NOT ARG_MODEL AND NOT ARG_PLAN)
    message(FATAL_ERROR "${where}: give MODEL, or a PLAN that says its model")
  endif()
  if(NOT ARG_BUDGET AND NOT ARG_BASELINE)
    message(FATAL_ERROR "${where}: give a BUDGET or a BASELINE, else nothing is compared")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  elseif(NOT ARG_TIMEOUT MATCHES "^[1-9][0-9]*$")
    message(FATAL_ERROR "${where}: TIMEOUT is a number of seconds, not `${ARG_TIMEOUT}`")
  endif()
  # add_test() makes nothing then and says nothing; a project whose tests were turned off is in order.
  if(NOT CMAKE_TESTING_ENABLED AND (NOT DEFINED BUILD_TESTING OR BUILD_TESTING))
    message(FATAL_ERROR "${where}: testing is not enabled, so there would be no test; call include(CTest) or "
      "enable_testing() before it, in the project's top CMakeLists.txt")
  endif()
  _stowage_find_program(program)

  set(arguments check)
  if(ARG_MODEL)
    list(APPEND arguments --model "${ARG_MODEL}")
  endif()
  foreach(file IN ITEMS PLAN BASELINE)
    if(ARG_${file})
      cmake_path(ABSOLUTE_PATH ARG_${file} BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
      string(TOLOWER "${file}" option)
      list(APPEND arguments --${option} "${ARG_${file}}")
    endif()
  endforeach()
  if(ARG_BASELINE)
    # One file holds one step: of two, the first to be written would fail the other.
    set(step)
    foreach(word IN ITEMS MODEL PLAN DEVICE BATCH SEQ DTYPE OPTIMIZER)
      list(APPEND step "${word}=${ARG_${word}}")
    endforeach()
    string(MD5 key "${ARG_BASELINE}")
    get_property(other GLOBAL PROPERTY STOWAGE_BASELINE_${key})
    if(other AND NOT other STREQUAL step)
      message(FATAL_ERROR "${where}: ${ARG_BASELINE} is the baseline of another step's test already; each step "
        "needs a file of its own")
    endif()
    set_property(GLOBAL PROPERTY STOWAGE_BASELINE_${key} "${step}")
  endif()
  foreach(option IN LISTS passed_on)
    if(ARG_${option})
      string(TOLOWER "${option}" flag)
      string(REPLACE "_" "-" flag "${flag}")
      list(APPEND arguments --${flag} "${ARG_${option}}")
    endif()
  endforeach()

  set(junit "${CMAKE_BINARY_DIR}/stowage-memory/${ARG_NAME}.xml")
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/stowage-memory")
  add_test(NAME ${ARG_NAME}
    COMMAND "${program}" ${arguments} --name "${ARG_NAME}" --junit "${junit}")
  set_tests_properties(${ARG_NAME} PROPERTIES
    LABELS memory TIMEOUT ${ARG_TIMEOUT} ATTACHED_FILES "${junit}")

  if(NOT ARG_BASELINE)
    return()
  endif()
  if(NOT TARGET stowage_update_baselines)
    add_custom_target(stowage_update_baselines)
  endif()
  add_custom_target(${ARG_NAME}_update_baseline
    COMMAND "${program}" ${arguments} --update-baseline
    COMMENT "Writing ${ARG_BASELINE}" VERBATIM)
  add_dependencies(stowage_update_baselines ${ARG_NAME}_update_baseline)
endfunction()
