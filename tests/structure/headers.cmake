# Each header compiles alone. For one with a .cpp beside it the build proves that already, since the .cpp
# includes it first (check_sources.py sees to it). Each of the others gets a generated file, in OBJECT libraries
# that only the test structure.headers builds, so that they cost nothing in daily work.
#
# On LibTorch all of that happens with the precompiled header, 2 s a file instead of 13. What it hides is whether
# the headers name the LibTorch headers that they need; for that, one more file includes all of them
# without it.
add_custom_target(stowage_header_checks)
get_property(libraries GLOBAL PROPERTY STOWAGE_LIBRARIES)
set(torch_libraries)
set(torch_includes)

function(stowage_header_check name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "PCH" "" "SOURCES;LIBRARIES")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${ARG_SOURCES})
  stowage_target_defaults(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} stowage_json CLI11::CLI11)
  add_dependencies(stowage_header_checks ${name})
  # Nothing runs: the optimizer has nothing to do here. The precompiled header brings its own option.
  if(NOT ARG_PCH)
    target_compile_options(${name} PRIVATE -O0 -g0)
  endif()
endfunction()

foreach(library IN LISTS libraries)
  get_target_property(headers ${library} STOWAGE_HEADERS)
  get_target_property(uses_torch ${library} STOWAGE_USES_TORCH)
  if(NOT headers)
    continue()
  endif()
  set(sources)
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE path)
    if(uses_torch)
      string(APPEND torch_includes "#include \"${path}\"\n")
    endif()
    string(REGEX REPLACE "\\.h$" ".cpp" beside "${header}")
    if(NOT EXISTS "${beside}")
      set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/${path}.cpp")
      file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${path}\"\n")
      list(APPEND sources "${source}")
    endif()
  endforeach()
  if(sources)
    if(uses_torch)
      stowage_header_check(${library}_headers PCH SOURCES ${sources} LIBRARIES ${library})
      stowage_use_torch_pch(${library}_headers UNOPTIMIZED)
    else()
      stowage_header_check(${library}_headers SOURCES ${sources} LIBRARIES ${library})
    endif()
  endif()
  if(uses_torch)
    list(APPEND torch_libraries ${library})
  endif()
endforeach()

if(torch_includes)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/torch_without_pch.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${torch_includes}" @ONLY)
  stowage_header_check(stowage_torch_headers SOURCES "${source}" LIBRARIES ${torch_libraries})
endif()

# CI checks the core's, in preset core: those on LibTorch take two minutes.
set(configurations)
if(torch_includes)
  set(configurations CONFIGURATIONS full)
endif()
stowage_structure_test(headers ${configurations} COMMAND
  "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target stowage_header_checks --parallel 2)
set_tests_properties(structure.headers PROPERTIES PROCESSORS 2)
if(torch_includes)
  set_tests_properties(structure.headers PROPERTIES LABELS full)
endif()
