# What Stowage stands on. The core needs zlib, nlohmann_json, CLI11 and threads; everything else only
# when its option is ON. The LibTorch part also needs xxHash's header.
set(STOWAGE_CORE_HINT "Run scripts/setup.sh, or: \
apt install g++ cmake ninja-build zlib1g-dev nlohmann-json3-dev libcli11-dev")

function(stowage_need package hint)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "Stowage needs ${package}, which was not found.\n${hint}")
  endif()
endfunction()

find_package(Threads QUIET)
stowage_need(Threads "${STOWAGE_CORE_HINT}")
find_package(ZLIB QUIET)
stowage_need(ZLIB "${STOWAGE_CORE_HINT}")
find_package(nlohmann_json 3.10 QUIET)
stowage_need(nlohmann_json "${STOWAGE_CORE_HINT}")
find_package(CLI11 QUIET)
stowage_need(CLI11 "${STOWAGE_CORE_HINT}")

# nlohmann_json is used by *_json.* files alone, always with these two settings: no conversion that
# is not written down, and errors that name their JSON pointer.
add_library(stowage_json INTERFACE)
target_link_libraries(stowage_json INTERFACE nlohmann_json::nlohmann_json)
target_compile_definitions(stowage_json INTERFACE JSON_USE_IMPLICIT_CONVERSIONS=0 JSON_DIAGNOSTICS=1)

# The core preset hides these three, whatever is installed; without the options nobody asks for them.
set(STOWAGE_HIDDEN_PACKAGES "${CMAKE_DISABLE_FIND_PACKAGE_Torch}"
  "${CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit}" "${CMAKE_DISABLE_FIND_PACKAGE_Qt6}")

if(STOWAGE_WITH_CUDA AND NOT STOWAGE_WITH_TORCH)
  message(FATAL_ERROR "STOWAGE_WITH_CUDA=ON needs STOWAGE_WITH_TORCH=ON: the CUDA device runs LibTorch.")
endif()

if(STOWAGE_WITH_TORCH)
  find_package(xxHash MODULE QUIET)
  stowage_need(xxHash "STOWAGE_WITH_TORCH=ON needs its header xxhash.h: run scripts/setup.sh, or: \
apt install libxxhash-dev")
  find_package(Torch 2.11 MODULE QUIET)
  stowage_need(Torch "STOWAGE_WITH_TORCH=ON: run scripts/setup.sh, or `pip install torch==2.11.0` into \
.venv, or pass -DTorch_ROOT=<folder with include/ and lib/>. \
Without LibTorch: -DSTOWAGE_WITH_TORCH=OFF.")
  if(STOWAGE_WITH_CUDA AND NOT TARGET Torch::cuda)
    message(FATAL_ERROR "STOWAGE_WITH_CUDA=ON, but the LibTorch in ${Torch_DIR_FOUND} has no CUDA.\n"
      "Run scripts/setup.sh, or `pip install torch==2.11.0`; no CUDA toolkit is needed.")
  endif()
  message(STATUS "LibTorch ${Torch_VERSION}: ${Torch_DIR_FOUND}")
endif()

if(STOWAGE_WITH_GUI)
  find_package(Qt6 6.2 QUIET COMPONENTS Core Gui Widgets Test)
  stowage_need(Qt6 "STOWAGE_WITH_GUI=ON: apt install qt6-base-dev. \
Without the viewer: -DSTOWAGE_WITH_GUI=OFF.")
endif()
