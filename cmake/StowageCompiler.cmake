# Language, output folders, warnings, sanitizers, ccache: everything about the compiler that holds for
# every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# -fPIC for executables too, not -fPIE: one precompiled header then serves all, and the static libraries
# can be linked into a user's shared one.
add_compile_options(-fPIC)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# Warnings, in one place. -Wsign-conversion is left out: ids and sizes are int64 and containers count
# in size_t, so it would ask for a cast at every subscript.
add_library(stowage_warnings INTERFACE)
target_compile_options(stowage_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wcast-qual -Wextra-semi -Wundef)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The optimizer's guesses about inlined library code. In GCC 12 and 13 the first three raise false
  # alarms inside std::string and nlohmann_json (PR105651, PR105329); the others stay warnings, no errors.
  target_compile_options(stowage_warnings INTERFACE
    -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(STOWAGE_WERROR)
  target_compile_options(stowage_warnings INTERFACE -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(stowage_warnings INTERFACE -Wno-error=maybe-uninitialized
      -Wno-error=stringop-overread -Wno-error=free-nonheap-object)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
      target_compile_options(stowage_warnings INTERFACE -Wno-error=dangling-reference)
    endif()
  endif()
endif()

if(STOWAGE_SANITIZE)
  # Global, so that no object escapes. No recovery: a finding ends the test.
  add_compile_options(-fsanitize=${STOWAGE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${STOWAGE_SANITIZE})
endif()

if(STOWAGE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "STOWAGE_FUZZ=ON: libFuzzer is clang's: apt install clang, then \
-DCMAKE_CXX_COMPILER=clang++, or cmake --preset fuzz.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(STOWAGE_CCACHE ccache)
  mark_as_advanced(STOWAGE_CCACHE)
  if(STOWAGE_CCACHE)
    # Paths below the source folder are hashed relative to it, so two checkouts share one cache. The
    # sloppiness is what ccache asks for with a precompiled header; __TIME__ is not used here.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros "${STOWAGE_CCACHE}")
  endif()
endif()
