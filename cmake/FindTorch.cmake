# FindTorch: LibTorch as SHARED IMPORTED targets by full path.
#
# The package's own TorchConfig.cmake is not used: it stops without a CUDA toolkit and nvcc, takes
# seconds, and sets neither NDEBUG nor an order in which the CUDA half survives --as-needed. The PyPI
# package `torch` is the whole C++ distribution, CUDA runtime and CUPTI included.
#
# Searched in this order; the first that holds include/torch and lib/libtorch_cpu.so wins:
#   1. Torch_ROOT (CMake variable, then environment): a `torch` package folder or an unpacked LibTorch
#   2. <project>/.venv/lib/python*/site-packages/torch
#   3. the `torch` of the python3 on PATH (found without importing it)
#
# Targets:
#   Torch::torch       c10 and torch_cpu: all that a CPU program needs
#   Torch::cuda        Torch::torch, c10_cuda, torch_cuda and the CUDA runtime (when present)
#   Torch::cupti       CUPTI of the same distribution (when present)
#   Torch::python      what Python's torch is made of (when present)
# Variables: Torch_FOUND, Torch_VERSION, Torch_DIR_FOUND (the folder), Torch_LIBRARY_DIR,
# Torch_CUDA_LIBRARY_DIR (when the CUDA runtime is present)

function(_torch_is_root folder result)
  if(EXISTS "${folder}/include/torch/csrc/api/include/torch/torch.h"
      AND EXISTS "${folder}/lib/libtorch_cpu.so")
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

set(_torch_candidates)
if(Torch_ROOT)
  list(APPEND _torch_candidates "${Torch_ROOT}")
elseif(DEFINED ENV{Torch_ROOT})
  list(APPEND _torch_candidates "$ENV{Torch_ROOT}")
else()
  file(GLOB _torch_venv "${PROJECT_SOURCE_DIR}/.venv/lib/python*/site-packages/torch")
  list(APPEND _torch_candidates ${_torch_venv} ${Torch_FALLBACK_ROOT})
endif()

set(Torch_DIR_FOUND)
foreach(_torch_candidate IN LISTS _torch_candidates)
  _torch_is_root("${_torch_candidate}" _torch_ok)
  if(_torch_ok)
    set(Torch_DIR_FOUND "${_torch_candidate}")
    break()
  endif()
endforeach()

if(NOT Torch_DIR_FOUND AND NOT Torch_ROOT AND NOT DEFINED ENV{Torch_ROOT})
  find_program(_torch_python python3 NO_CACHE)
  if(_torch_python)
    execute_process(
      COMMAND "${_torch_python}" -c
        "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
      OUTPUT_VARIABLE _torch_candidate OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    _torch_is_root("${_torch_candidate}" _torch_ok)
    if(_torch_ok)
      set(Torch_DIR_FOUND "${_torch_candidate}")
    endif()
  endif()
endif()

set(Torch_VERSION)
if(Torch_DIR_FOUND)
  set(Torch_LIBRARY_DIR "${Torch_DIR_FOUND}/lib")
  foreach(_torch_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT Torch_VERSION AND EXISTS "${Torch_DIR_FOUND}/include/${_torch_header}")
      file(STRINGS "${Torch_DIR_FOUND}/include/${_torch_header}" _torch_lines
        REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      string(REGEX REPLACE "[^0-9;]" "" _torch_lines "${_torch_lines}")
      list(JOIN _torch_lines "." Torch_VERSION)
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Torch REQUIRED_VARS Torch_DIR_FOUND VERSION_VAR Torch_VERSION)

if(Torch_FOUND AND NOT TARGET Torch::torch)
  # NDEBUG even in debug builds: the library was built with it, and without it
  # RecordFunction::inputs() throws inside callbacks. _GLIBCXX_USE_CXX11_ABI is 1, the default.
  function(_torch_import name library)
    add_library(Torch::${name} SHARED IMPORTED)
    set_target_properties(Torch::${name} PROPERTIES
      IMPORTED_LOCATION "${library}"
      INTERFACE_INCLUDE_DIRECTORIES
        "${Torch_DIR_FOUND}/include;${Torch_DIR_FOUND}/include/torch/csrc/api/include"
      INTERFACE_COMPILE_DEFINITIONS NDEBUG)
  endfunction()

  # What the libraries themselves need lies beside the package, found at run time through their own
  # RPATH. The linker does not follow $ORIGIN there, so it is told.
  set(_torch_rpath_link)
  get_filename_component(_torch_site "${Torch_DIR_FOUND}/.." ABSOLUTE)
  file(GLOB _torch_beside LIST_DIRECTORIES TRUE "${_torch_site}/nvidia/*/lib")
  foreach(_torch_folder IN LISTS _torch_beside)
    list(APPEND _torch_rpath_link "LINKER:-rpath-link,${_torch_folder}")
  endforeach()

  find_package(Threads QUIET)
  _torch_import(c10 "${Torch_LIBRARY_DIR}/libc10.so")
  _torch_import(torch_cpu "${Torch_LIBRARY_DIR}/libtorch_cpu.so")
  add_library(Torch::torch INTERFACE IMPORTED)
  set_target_properties(Torch::torch PROPERTIES
    INTERFACE_LINK_LIBRARIES "Torch::torch_cpu;Torch::c10;Threads::Threads"
    INTERFACE_LINK_OPTIONS "${_torch_rpath_link}")

  if(EXISTS "${Torch_LIBRARY_DIR}/libtorch_python.so")
    _torch_import(python "${Torch_LIBRARY_DIR}/libtorch_python.so")
  endif()
  file(GLOB _torch_cudart "${_torch_site}/nvidia/cu*/lib/libcudart.so.*")
  file(GLOB _torch_cupti "${_torch_site}/nvidia/cu*/lib/libcupti.so.*")
  if(EXISTS "${Torch_LIBRARY_DIR}/libtorch_cuda.so" AND _torch_cudart)
    list(GET _torch_cudart 0 _torch_cudart)
    get_filename_component(Torch_CUDA_LIBRARY_DIR "${_torch_cudart}" DIRECTORY)
    get_filename_component(_torch_cuda_include "${_torch_cudart}/../../include" ABSOLUTE)
    _torch_import(c10_cuda "${Torch_LIBRARY_DIR}/libc10_cuda.so")
    _torch_import(torch_cuda "${Torch_LIBRARY_DIR}/libtorch_cuda.so")
    add_library(Torch::cudart SHARED IMPORTED)
    set_target_properties(Torch::cudart PROPERTIES
      IMPORTED_LOCATION "${_torch_cudart}"
      INTERFACE_INCLUDE_DIRECTORIES "${_torch_cuda_include}")
    add_library(Torch::cuda INTERFACE IMPORTED)
    # Nothing refers to torch_cuda by symbol: it registers itself when loaded. With --as-needed, the
    # default on some systems, CUDA would silently be absent.
    set_target_properties(Torch::cuda PROPERTIES
      INTERFACE_LINK_LIBRARIES "Torch::torch;Torch::c10_cuda;Torch::torch_cuda;Torch::cudart"
      INTERFACE_LINK_OPTIONS "LINKER:--no-as-needed")
    if(_torch_cupti)
      list(GET _torch_cupti 0 _torch_cupti)
      add_library(Torch::cupti SHARED IMPORTED)
      set_target_properties(Torch::cupti PROPERTIES
        IMPORTED_LOCATION "${_torch_cupti}"
        INTERFACE_INCLUDE_DIRECTORIES "${_torch_cuda_include}")
    endif()
  endif()
endif()
