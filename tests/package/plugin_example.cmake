# What docs/models.md says of a plugin, with the installed programs: record, plan, verify.
function(run)
  execute_process(COMMAND "${STOWAGE}" ${ARGN} WORKING_DIRECTORY "${WORK}"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "stowage ${ARGN}: exit code ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(profile plugin:${PLUGIN}:blocks=4 --device cpu --threads 1 --batch 512 -o t.json.gz)
run(plan t.json.gz --budget 70% -o p.json)
run(verify --plan p.json --json)
if(NOT output MATCHES "\"bitwise\": *true")
  message(FATAL_ERROR "not bitwise equal:\n${output}")
endif()
