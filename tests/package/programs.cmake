# Every program in BIN resolves every library that it links.
file(GLOB programs "${BIN}/*")
foreach(program IN LISTS programs)
  execute_process(COMMAND ldd "${program}" OUTPUT_VARIABLE output RESULT_VARIABLE status)
  if(status OR output MATCHES "not found")
    message(FATAL_ERROR "${program} does not find its libraries:\n${output}")
  endif()
  message(STATUS "${program} finds its libraries")
endforeach()
