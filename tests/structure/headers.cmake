# Each header compiles alone, and twice. One generated file a header in OBJECT libraries that only the
# test structure.headers builds, so that they cost nothing in daily work.
#
# LibTorch headers: a file of their own each would take 13 s, minutes in all. With the precompiled header
# it is 2 s, and proves everything except that a header names the LibTorch headers that it needs itself. For
# that, one more file includes them all without the precompiled header.
add_custom_target(stowage_header_checks)
get_property(libraries GLOBAL PROPERTY STOWAGE_LIBRARIES)
set(torch_libraries)
set(torch_includes)

function(stowage_header_check name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBRARIES")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${ARG_SOURCES})
  stowage_target_defaults(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} stowage_json CLI11::CLI11)
  add_dependencies(stowage_header_checks ${name})
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
    set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/${path}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${path}\"\n#include \"${path}\"\n")
    list(APPEND sources "${source}")
    if(uses_torch)
      string(APPEND torch_includes "#include \"${path}\"\n")
    endif()
  endforeach()
  stowage_header_check(${library}_headers SOURCES ${sources} LIBRARIES ${library})
  if(uses_torch)
    stowage_use_torch_pch(${library}_headers)
    list(APPEND torch_libraries ${library})
  endif()
endforeach()

if(torch_includes)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/torch_without_pch.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${torch_includes}" @ONLY)
  stowage_header_check(stowage_torch_headers SOURCES "${source}" LIBRARIES ${torch_libraries})
endif()

stowage_structure_test(headers
  "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target stowage_header_checks --parallel 2)
set_tests_properties(structure.headers PROPERTIES PROCESSORS 2)
