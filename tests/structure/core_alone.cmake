# The core configures where LibTorch, CUDA and Qt cannot be found, nothing of them reaches a compiler call,
# and asking for one of them is an error that says what to do.
file(REMOVE_RECURSE "${WORK}")

execute_process(
  COMMAND "${CMAKE_COMMAND}" --preset core -B "${WORK}/core" -D STOWAGE_BUILD_TESTS=OFF
  WORKING_DIRECTORY "${SOURCE}"
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "The core preset does not configure:\n${output}")
endif()
foreach(package Torch CUDAToolkit Qt6)
  file(STRINGS "${WORK}/core/CMakeCache.txt" entry
    REGEX "^CMAKE_DISABLE_FIND_PACKAGE_${package}:.*=ON$")
  if(NOT entry)
    message(FATAL_ERROR "The core preset does not disable find_package(${package})")
  endif()
endforeach()
if(EXISTS "${WORK}/core/compile_commands.json")
  file(STRINGS "${WORK}/core/compile_commands.json" commands REGEX "\"command\"")
  foreach(command IN LISTS commands)
    # Where the checkout lies is no finding.
    string(REPLACE "${WORK}" "" command "${command}")
    string(REPLACE "${SOURCE}/" "" command "${command}")
    if(command MATCHES "site-packages|[Ll]ib[Tt]orch|/cuda|[Cc]upti|Qt6")
      message(FATAL_ERROR "A compiler call of the core knows LibTorch, CUDA or Qt:\n${command}")
    endif()
  endforeach()
endif()

function(must_refuse name hint)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/${name}" -G Ninja
      -D STOWAGE_BUILD_TESTS=OFF ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  if(NOT status)
    message(FATAL_ERROR "${name}: configured, though what was asked for is missing")
  endif()
  string(FIND "${output}" "${hint}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${name}: refused without the hint '${hint}':\n${output}")
  endif()
endfunction()

must_refuse(torch_missing "scripts/setup.sh"
  -D STOWAGE_WITH_TORCH=ON -D CMAKE_DISABLE_FIND_PACKAGE_Torch=ON)
must_refuse(xxhash_missing "libxxhash-dev"
  -D STOWAGE_WITH_TORCH=ON -D CMAKE_DISABLE_FIND_PACKAGE_xxHash=ON)
must_refuse(cuda_without_torch "STOWAGE_WITH_TORCH=ON" -D STOWAGE_WITH_CUDA=ON)
must_refuse(qt_missing "qt6-base-dev" -D STOWAGE_WITH_GUI=ON -D CMAKE_DISABLE_FIND_PACKAGE_Qt6=ON)
must_refuse(zlib_missing "zlib1g-dev" -D CMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON)
