# One target a folder.
#
#   stowage_library(NAME traces [FOLDERS sub..] [DEPENDS target..] [LINKS target..] [JSON] [TORCH]
#                   [INTERNAL] [COMPONENT core|executor])
#
# makes the target stowage_<NAME>, alias stowage::<NAME>, of the *.cpp and *.h in the current folder and
# in the subfolders named in FOLDERS; a new file is picked up by the next build. main.cpp is left to
# stowage_executable. DEPENDS is public; LINKS is an outside library that no public header shows. JSON gives
# nlohmann_json. TORCH marks a target of the LibTorch part: it links Torch::torch (Torch::cuda when
# STOWAGE_WITH_CUDA), uses the precompiled header and is installed as component `executor`
# (the default is `core`).
# INTERNAL targets are not installed; of the headers of the others those that the public API shows are (include/,
# StowageInstall.cmake). Without any .cpp the target is an INTERFACE library.

set_property(GLOBAL PROPERTY STOWAGE_LIBRARIES "")

function(_stowage_glob result)
  set(patterns *.cpp *.h)
  foreach(folder IN LISTS ARGN)
    list(APPEND patterns "${folder}/*.cpp" "${folder}/*.h")
  endforeach()
  file(GLOB files CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" ${patterns})
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# What every target of ours is compiled with, beyond what it links.
function(stowage_target_defaults target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:stowage_warnings>)
  target_include_directories(${target} PRIVATE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)
endfunction()

# The LibTorch headers precompiled once: without it each file spends 10 to 20 s in them. UNOPTIMIZED: once more, for
# what is compiled without the optimizer; the target gets the option.
function(stowage_use_torch_pch target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "UNOPTIMIZED" "" "")
  set(pch stowage_torch_pch)
  set(optimize)
  if(ARG_UNOPTIMIZED)
    set(pch stowage_torch_pch_unoptimized)
    set(optimize $<$<CONFIG:Release,RelWithDebInfo>:-O0>)
    target_compile_options(${target} PRIVATE ${optimize})
  endif()
  if(NOT STOWAGE_PCH)
    return()
  endif()
  if(NOT TARGET ${pch})
    set(source "${PROJECT_BINARY_DIR}/generated/${pch}.cpp")
    file(GENERATE OUTPUT "${source}" CONTENT "")
    add_library(${pch} OBJECT "${source}")
    # The warnings too: -Wpedantic changes predefined macros, and GCC then refuses the header.
    target_link_libraries(${pch} PRIVATE Torch::torch stowage_warnings)
    target_precompile_headers(${pch} PRIVATE
      <ATen/ATen.h> <ATen/record_function.h> <torch/csrc/autograd/engine.h>
      <torch/csrc/autograd/saved_variable_hooks.h>)
    # GCC can only reuse a precompiled header if ccache may see through it.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${pch} PRIVATE -fpch-preprocess ${optimize})
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()

function(stowage_library)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "JSON;TORCH;INTERNAL" "NAME;COMPONENT" "FOLDERS;DEPENDS;LINKS")
  set(target stowage_${ARG_NAME})
  _stowage_glob(files ${ARG_FOLDERS})
  list(FILTER files EXCLUDE REGEX "(^|/)main\\.cpp$")
  set(sources ${files})
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(headers ${files})
  list(FILTER headers INCLUDE REGEX "\\.h$")

  if(sources)
    add_library(${target} STATIC ${sources} ${headers})
    set(scope PUBLIC)
    stowage_target_defaults(${target})
    target_link_libraries(${target} PRIVATE ${ARG_LINKS})
    if(ARG_JSON)
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:stowage_json>)
    endif()
  else()
    add_library(${target} INTERFACE ${headers})
    set(scope INTERFACE)
  endif()
  add_library(stowage::${ARG_NAME} ALIAS ${target})

  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT core)
  endif()
  if(ARG_TORCH)
    set(ARG_COMPONENT executor)
    list(APPEND ARG_DEPENDS $<IF:$<BOOL:${STOWAGE_WITH_CUDA}>,Torch::cuda,Torch::torch>)
  endif()
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${ARG_DEPENDS})
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(ARG_TORCH AND sources)
    stowage_use_torch_pch(${target})
  endif()

  # Read by tests/structure (each header compiles alone).
  list(TRANSFORM headers PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${ARG_NAME}
    STOWAGE_HEADERS "${headers}"
    STOWAGE_USES_TORCH "${ARG_TORCH}")
  set_property(GLOBAL APPEND PROPERTY STOWAGE_LIBRARIES ${target})

  if(ARG_INTERNAL)
    return()
  endif()
  install(TARGETS ${target} EXPORT stowage-${ARG_COMPONENT} ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endfunction()

#   stowage_executable(NAME stowage [DEPENDS target..])
#
# makes the executable NAME of main.cpp in the current folder, when that file is there.
function(stowage_executable)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "TORCH" "NAME" "DEPENDS")
  file(GLOB main CONFIGURE_DEPENDS main.cpp)
  if(NOT main)
    return()
  endif()
  add_executable(${ARG_NAME} ${main})
  stowage_target_defaults(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPENDS})
  if(ARG_TORCH)
    stowage_use_torch_pch(${ARG_NAME})
    # Installed, it finds the LibTorch that it was linked against.
    set_target_properties(${ARG_NAME} PROPERTIES
      INSTALL_RPATH "${Torch_LIBRARY_DIR};${Torch_CUDA_LIBRARY_DIR}")
  endif()
  install(TARGETS ${ARG_NAME} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()
