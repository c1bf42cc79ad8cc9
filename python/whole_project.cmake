# The project above this folder, for a build of the package alone: its libraries, no tests, no programs that
# nobody asked for. Flags as in the presets.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "As in the presets" FORCE)
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10 CACHE STRING "Files that are compiled as one")
set(STOWAGE_BUILD_TESTS OFF)
set(STOWAGE_BUILD_EXAMPLES OFF)
set(STOWAGE_BUILD_PYTHON OFF)
set(STOWAGE_WITH_TORCH ${STOWAGE_PYTHON_TORCH})
if(STOWAGE_PYTHON_TORCH AND NOT Torch_ROOT)
  # The torch that the package will run with, found without importing it.
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c
    "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE Torch_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
# A torch with CUDA runs on GPUs.
set(STOWAGE_WITH_CUDA OFF)
if(STOWAGE_PYTHON_TORCH AND EXISTS "${Torch_ROOT}/lib/libtorch_cuda.so")
  set(STOWAGE_WITH_CUDA ON)
endif()
# What the project finds (LibTorch, zlib), the modules of this folder link, too.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
cmake_path(GET CMAKE_CURRENT_SOURCE_DIR PARENT_PATH root)
add_subdirectory("${root}" stowage_project EXCLUDE_FROM_ALL)
